#include "daemon/plane/control_loop.h"

#include <boost/asio/post.hpp>
#include <future>
#include <memory>

#include "common/thread.h"

namespace ferry::daemon {

void ControlLoop::Start() {
  thread_ = MakeThread("ferry-control", [this] { context_.run(); });
}

void ControlLoop::Stop() {
  context_.stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void ControlLoop::Post(std::function<void()> function) {
  boost::asio::post(context_, std::move(function));
}

void ControlLoop::RunCall(void (*run)(void*), void* call) {
  // The handler's, too: the caller may go on before the task has returned.
  const auto task = std::make_shared<std::packaged_task<void()>>([run, call] { run(call); });
  Post([task] { (*task)(); });
  task->get_future().get();
}

}  // namespace ferry::daemon
