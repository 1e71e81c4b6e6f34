#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

/// The interpreter's lock, in threads that may outlive the interpreter.
///
/// A thread that asks for the lock of an interpreter that is ending is ended by it: it unwinds, which no destructor
/// allows, and the process would abort. It sleeps instead until the process is gone, as Python does from 3.14 on.
namespace tc::python {

template <typename Take>
auto take_or_sleep(Take take) {
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    while (true) ::pause();
  }
}

/// Without the lock until the end of the scope.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() {
    take_or_sleep([this] { PyEval_RestoreThread(state_); });
  }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

/// With the lock until the end of the scope; in any thread, with or without it.
class GilHeld {
 public:
  GilHeld() : state_(take_or_sleep([] { return PyGILState_Ensure(); })) {}
  ~GilHeld() { PyGILState_Release(state_); }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace tc::python
