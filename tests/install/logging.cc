// A user's program that logs by glog, and gives the library's messages to it.
#include <glog/logging.h>
#include <tc/api/tc.h>

#include <iostream>

int main(int, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  LOG(INFO) << "a message of the program's own";
  tc::set_log([](const tc::LogMessage& message) { LOG(INFO) << "tensorc: " << message.text; });
  const char* text = "def scaled(float(N) a) -> (b) { b(n) = a(n) * 2.0 }";
  auto kernel = tc::api::compile(text, {.sizes = {{"N", 4}}});
  if (!kernel) {
    std::cerr << kernel.error().to_string();
    return 1;
  }
  tc::set_log({});
}
