#include "daemon/peers/greeting_turns.h"

#include <utility>

namespace ferry::daemon {

void GreetingTurns::Await(const std::vector<uid_t>& users, Start start) {
  for (const uid_t user : users) {
    if (lines_[user].under_way < at_once_) {
      ++lines_[user].under_way;
      if (!start(user)) {
        End(user);
      }
      return;
    }
  }
  const auto kept = std::make_shared<const Start>(std::move(start));
  for (const uid_t user : users) {
    lines_[user].waiting.push_back(kept);
  }
}

void GreetingTurns::End(uid_t user) {
  Line& line = lines_[user];
  while (!line.waiting.empty()) {
    const std::shared_ptr<const Start> next = std::move(line.waiting.front());
    line.waiting.pop_front();
    if ((*next)(user)) {
      return;  // this greeting takes the place
    }
  }
  if (--line.under_way == 0) {
    lines_.erase(user);
  }
}

}  // namespace ferry::daemon
