// How a core asks for somebody who matches and copies for a rank while that computes.
#pragma once

#include <memory>

namespace ferry::progress {

// How the progress thread asks the progress worker to look after a rank.
class Attention {
 public:
  virtual ~Attention() = default;
  // Any thread; never blocks for long.
  virtual void Raise() = 0;
};
using AttentionPtr = std::shared_ptr<Attention>;

}  // namespace ferry::progress
