// The order in which addresses that have never answered are greeted.
//
// A launcher names the nodes of a job as it likes, also addresses where no daemon is. Each greeting
// takes a connection and, until it is given up, a descriptor and memory of gRPC's. So only so many
// of each user's nodes are greeted at a time; the others wait behind those of their own users only.
//
// Thread: the control thread; nothing blocks.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace ferry::daemon {

class GreetingTurns {
 public:
  // Begins a greeting, which counts for that user until End. False: no job wants it any more, or it
  // has begun for another of its users.
  using Start = std::function<bool(uid_t user)>;

  explicit GreetingTurns(size_t at_once) : at_once_(at_once) {}

  // Calls `start` now, or once it is the turn of one of these users. At most one of these calls may
  // return true.
  void Await(const std::vector<uid_t>& users, Start start);
  // A greeting that counts for this user is over: the next one begins.
  void End(uid_t user);

 private:
  struct Line {
    size_t under_way = 0;
    std::deque<std::shared_ptr<const Start>> waiting;
  };

  const size_t at_once_;
  std::map<uid_t, Line> lines_;
};

}  // namespace ferry::daemon
