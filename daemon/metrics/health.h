// Finds out whether ferryd works, for load balancers and orchestrators: whether its control thread
// and its progress thread answer, and whether it takes jobs.
//
// Thread: that of the io_context. Nothing blocks: a thread that is stuck is noticed by its silence.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ferry::daemon {

// The work that the control thread knows of.
struct ServedWork {
  bool is_draining = false;
  uint64_t jobs = 0;
  uint64_t ranks = 0;  // here
};

enum class HealthState {
  kReady,     // takes jobs
  kDraining,  // goes on with its jobs, and takes no new ones
  kSick,      // a thread of it does not answer
};

struct Health {
  HealthState state = HealthState::kSick;
  ServedWork work;      // not known of a control thread that does not answer
  std::string trouble;  // of kSick: what does not answer

  // One line of JSON, with the end of the line.
  std::string Json(const std::string& node_name) const;
};

// How to ask the two threads. Each function returns at once, and has the thread call its argument,
// perhaps never.
struct HealthSources {
  std::function<void(std::function<void(const ServedWork&)>)> control;
  std::function<void(std::function<void()>)> progress;
};

class HealthCheck {
 public:
  HealthCheck(boost::asio::io_context& context, HealthSources sources);
  ~HealthCheck();

  // Calls `done` once: when both threads have answered, or one has not for two seconds. Those who
  // ask meanwhile share the answer, so that many of them cost no more.
  void Ask(std::function<void(const Health&)> done);

 private:
  // Where a thread puts its answer, however late.
  struct Door {
    std::mutex mutex;
    HealthCheck* check;  // null once it is gone
  };
  struct Question {
    bool is_open = false;  // asked, and not answered: it is not asked again
    bool is_answered = false;
  };

  void AskThread(Question* question, const std::function<void()>& ask);
  void OnAnswer(Question* question);
  void Finish();

  boost::asio::io_context& context_;
  const HealthSources sources_;
  const std::shared_ptr<Door> door_;
  boost::asio::steady_timer patience_;
  uint64_t round_ = 0;  // of checks: a timer that has run out may be told of late
  Question control_;
  Question progress_;
  ServedWork work_;
  std::vector<std::function<void(const Health&)>> waiting_;
};

}  // namespace ferry::daemon
