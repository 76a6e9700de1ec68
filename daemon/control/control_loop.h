// The control thread: one Asio loop that owns the jobs, the attach connections and the links to
// other nodes, so that none of them needs a lock. gRPC's threads reach them through Post and Run.
#pragma once

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <thread>
#include <utility>

namespace ferry::daemon {

class ControlLoop {
 public:
  ControlLoop() : work_(boost::asio::make_work_guard(context_)) {}
  ~ControlLoop() { Stop(); }
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  boost::asio::io_context& context() { return context_; }

  void Start() {
    thread_ = std::thread([this] { context_.run(); });
    pthread_setname_np(thread_.native_handle(), "ferry-control");
  }
  // Ends the thread after the handler it is in; handlers that were posted and have not run never
  // will. All threads that might call Run must have stopped before.
  void Stop() {
    context_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  // Any thread; returns at once.
  template <typename Function>
  void Post(Function function) {
    boost::asio::post(context_, std::move(function));
  }

  // Any other thread than the loop's: runs `function` there and waits for its result.
  template <typename Function>
  auto Run(Function function) -> decltype(function()) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto result = task.get_future();
    Post([&task] { task(); });
    return result.get();
  }

 private:
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace ferry::daemon
