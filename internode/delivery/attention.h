// The request of a core that a worker match and copy for a rank while the rank computes.
#pragma once

#include <memory>

namespace ferry::progress {

// Raised by the progress thread; the progress worker then looks after the rank.
class Attention {
 public:
  virtual ~Attention() = default;
  // Any thread; never blocks for long.
  virtual void Raise() = 0;
};
using AttentionPtr = std::shared_ptr<Attention>;

}  // namespace ferry::progress
