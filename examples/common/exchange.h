// Exchanges faces with the neighbours in each iteration: straight from where they lie, or staged
// through host memory by the program itself, as a program must do with a library that knows no
// device memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "examples/common/array.h"
#include "ferry/ferry.hpp"

namespace examples {

// `count` numbers to one neighbour, and as many from it.
struct Face {
  const double* send = nullptr;
  double* receive = nullptr;
  size_t count = 0;
  int peer = 0;
  int send_tag = 0;
  int receive_tag = 0;
};

class Exchange {
 public:
  // `staged_numbers`: the faces are staged, through room for that many numbers each way (0: sent
  // straight).
  explicit Exchange(size_t staged_numbers);

  // Begins to send and receive. Staged: copies the faces to be sent to the host first.
  void Start(std::span<const Face> faces);
  // Waits for all of Start's faces. Staged: copies the received ones back.
  void Finish();

  // The bytes that the program itself has copied, both ways.
  uint64_t staged_bytes() const { return staged_bytes_; }

 private:
  bool staged() const { return sent_.size() > 0; }
  void Copy(double* destination, const double* source, size_t count);

  Array sent_;
  Array received_;
  std::span<const Face> faces_;
  std::vector<ferry::Request> receives_;
  std::vector<ferry::Request> sends_;
  uint64_t staged_bytes_ = 0;
};

}  // namespace examples
