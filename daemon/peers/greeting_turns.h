// Whose turn it is to greet an address that has never answered.
//
// A launcher names the nodes of a job as it likes, and nobody may be there. Each greeting takes a
// connection, and until it is given up also a descriptor and memory of gRPC's. So of each user's
// nodes only so many are greeted at a time; the others wait in line behind their own users' only.
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
  // Begins a greeting, which counts for that user until End. False: nobody wants it any more, or it
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
