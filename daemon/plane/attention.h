// How the progress thread asks the progress worker to look after a rank.
#pragma once

#include <memory>

namespace ferry::daemon {

class Attention {
 public:
  virtual ~Attention() = default;
  // Any thread; never blocks for long.
  virtual void Raise() = 0;
};
using AttentionPtr = std::shared_ptr<Attention>;

}  // namespace ferry::daemon
