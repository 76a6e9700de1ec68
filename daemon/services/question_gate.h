// Bounds how many expensive questions of one user the daemon answers at a time: each holds a
// thread, and some wait for other daemons or for a driver.
//
// Any thread; nothing blocks.
#pragma once

#include <sys/types.h>

#include <map>
#include <mutex>
#include <optional>

namespace ferry::daemon {

class QuestionGate {
 public:
  explicit QuestionGate(int most) : most_(most) {}
  QuestionGate(const QuestionGate&) = delete;
  QuestionGate& operator=(const QuestionGate&) = delete;

  // A place in the gate; its destructor gives it back. The gate must outlive it.
  class Place {
   public:
    Place(QuestionGate* gate, uid_t uid) : gate_(gate), uid_(uid) {}
    Place(Place&& other) noexcept : gate_(other.gate_), uid_(other.uid_) { other.gate_ = nullptr; }
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (gate_ != nullptr) {
        gate_->Leave(uid_);
      }
    }

   private:
    QuestionGate* gate_;
    const uid_t uid_;
  };

  // Returns a place for a question of that user; nothing if he holds as many as he may.
  std::optional<Place> Enter(uid_t uid) {
    const std::lock_guard lock(mutex_);
    int& inside = inside_[uid];
    if (inside >= most_) {
      return std::nullopt;
    }
    ++inside;
    return Place(this, uid);
  }

 private:
  void Leave(uid_t uid) {
    const std::lock_guard lock(mutex_);
    const auto user = inside_.find(uid);
    if (--user->second == 0) {
      inside_.erase(user);
    }
  }

  const int most_;
  std::mutex mutex_;
  std::map<uid_t, int> inside_;
};

}  // namespace ferry::daemon
