#include "examples/common/exchange.h"

namespace examples {

// Pinned: the best that a program can do by itself.
Exchange::Exchange(size_t staged_numbers)
    : sent_(staged_numbers, Memory::kPinned), received_(staged_numbers, Memory::kPinned) {}

void Exchange::Start(std::span<const Face> faces) {
  faces_ = faces;
  size_t offset = 0;
  for (const Face& face : faces_) {
    double* target = staged() ? received_.data() + offset : face.receive;
    receives_.push_back(
        ferry::Request::Receive(target, face.count * sizeof(double), face.peer, face.receive_tag));
    offset += face.count;
  }
  offset = 0;
  for (const Face& face : faces_) {
    const double* source = face.send;
    if (staged()) {
      Copy(sent_.data() + offset, face.send, face.count);
      source = sent_.data() + offset;
    }
    sends_.push_back(
        ferry::Request::Send(source, face.count * sizeof(double), face.peer, face.send_tag));
    offset += face.count;
  }
}

void Exchange::Finish() {
  size_t offset = 0;
  for (size_t i = 0; i < faces_.size(); ++i) {
    receives_[i].Wait();
    if (staged()) {
      Copy(faces_[i].receive, received_.data() + offset, faces_[i].count);
    }
    offset += faces_[i].count;
  }
  for (ferry::Request& send : sends_) {
    send.Wait();
  }
  receives_.clear();
  sends_.clear();
}

void Exchange::Copy(double* destination, const double* source, size_t count) {
  ferry::Check(ferry_memcpy(destination, source, count * sizeof(double)));
  staged_bytes_ += count * sizeof(double);
}

}  // namespace examples
