#include "daemon/metrics/health.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace ferry::daemon {
namespace {

constexpr std::chrono::seconds kPatience(2);  // below the timeouts of those who ask

const char* TextOf(HealthState state) {
  switch (state) {
    case HealthState::kReady:
      return "ready";
    case HealthState::kDraining:
      return "draining";
    case HealthState::kSick:
      break;
  }
  return "sick";
}

}  // namespace

std::string Health::Json(const std::string& node_name) const {
  nlohmann::ordered_json line = {{"status", TextOf(state)}, {"node", node_name}};
  if (state == HealthState::kSick) {
    line["trouble"] = trouble;
  } else {
    line["jobs"] = work.jobs;
    line["ranks"] = work.ranks;
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

HealthCheck::HealthCheck(boost::asio::io_context& context, HealthSources sources)
    : context_(context),
      sources_(std::move(sources)),
      door_(std::make_shared<Door>()),
      patience_(context) {
  door_->check = this;
}

HealthCheck::~HealthCheck() {
  const std::lock_guard lock(door_->mutex);
  door_->check = nullptr;
}

void HealthCheck::AskThread(Question* question, const std::function<void()>& ask) {
  question->is_answered = false;
  if (!std::exchange(question->is_open, true)) {
    ask();
  }
}

void HealthCheck::Ask(std::function<void(const Health&)> done) {
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) {
    return;  // a check is under way
  }
  patience_.expires_after(kPatience);
  patience_.async_wait([this, round = ++round_](const boost::system::error_code& error) {
    if (!error && round == round_ && !waiting_.empty()) {
      Finish();
    }
  });
  // The answers hold no more than the door: an answer may come when this has gone.
  AskThread(&control_, [this] {
    sources_.control([door = door_](const ServedWork& work) {
      const std::lock_guard lock(door->mutex);
      if (HealthCheck* const check = door->check; check != nullptr) {
        boost::asio::post(check->context_, [check, work] {
          check->work_ = work;
          check->OnAnswer(&check->control_);
        });
      }
    });
  });
  AskThread(&progress_, [this] {
    sources_.progress([door = door_] {
      const std::lock_guard lock(door->mutex);
      if (HealthCheck* const check = door->check; check != nullptr) {
        boost::asio::post(check->context_, [check] { check->OnAnswer(&check->progress_); });
      }
    });
  });
}

void HealthCheck::OnAnswer(Question* question) {
  question->is_open = false;
  question->is_answered = true;
  if (control_.is_answered && progress_.is_answered && !waiting_.empty()) {
    patience_.cancel();
    Finish();
  }
}

void HealthCheck::Finish() {
  Health health;
  health.work = work_;
  if (!control_.is_answered || !progress_.is_answered) {
    health.trouble = control_.is_answered    ? "the progress thread does not answer"
                     : progress_.is_answered ? "the control thread does not answer"
                                             : "neither control nor progress thread answers";
  } else {
    health.state = work_.is_draining ? HealthState::kDraining : HealthState::kReady;
  }
  for (const auto& done : std::exchange(waiting_, {})) {
    done(health);
  }
}

}  // namespace ferry::daemon
