#pragma once

#include <functional>
#include <stop_token>

namespace tc::python {

/// Runs `work` in a thread of its own and waits for its end, with the GIL released. In between, twenty times a second,
/// signals are looked at and `meanwhile` is called, with the GIL, in the caller's thread. If either raises, Ctrl-C
/// above all, `stop` is requested, and the exception is thrown when the work has ended; so is what `work` throws. What
/// the library warns of meanwhile is given in the caller's thread at the end. What it logs is given in between.
void run_interruptibly(std::stop_source stop, const std::function<void()>& work,
                       const std::function<void()>& meanwhile = nullptr);

/// Waits while another thread works, with the GIL released and signals looked at in between.
void wait_while(const std::function<bool()>& busy);

}  // namespace tc::python
