// The control thread: one Asio loop that owns the jobs, the attach connections and the links to
// other nodes, so that none of them needs a lock. gRPC's threads reach them through Post and Run.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace ferry::daemon {

class ControlLoop {
 public:
  ControlLoop() : work_(boost::asio::make_work_guard(context_)) {}
  ~ControlLoop() { Stop(); }
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  boost::asio::io_context& context() { return context_; }

  void Start();
  // Ends the thread after the handler it is in; handlers that were posted and have not run never
  // will. All threads that might call Run must have stopped before.
  void Stop();

  // Makes the loop call `function`; returns at once. Any thread.
  void Post(std::function<void()> function);

  // Runs `function` on the loop's thread and waits for its result. Any thread but the loop's own.
  template <typename Function>
  auto Run(Function function) -> decltype(function()) {
    using Result = decltype(function());
    if constexpr (std::is_void_v<Result>) {
      RunCall([](void* call) { (*static_cast<Function*>(call))(); }, &function);
    } else {
      std::optional<Result> result;
      Run([&] { result.emplace(function()); });
      return *std::move(result);
    }
  }

 private:
  // The part of Run that is compiled once.
  void RunCall(void (*run)(void*), void* call);

  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace ferry::daemon
