#include "client/p2p/offload_table.h"

#include <iterator>

namespace ferry::client {
namespace {

// The entry that begins at or before `address`, or null.
template <typename Map>
typename Map::mapped_type At(const Map& map, const void* address) {
  const auto after = map.upper_bound(static_cast<const std::byte*>(address));
  return after == map.begin() ? nullptr : std::prev(after)->second;
}

}  // namespace

bool OffloadTable::Overlaps(const void* begin, uint64_t size_bytes) const {
  const auto* first = static_cast<const std::byte*>(begin);
  const auto next = by_begin_.lower_bound(first);
  if (next != by_begin_.end() && static_cast<uint64_t>(next->first - first) < size_bytes) {
    return true;
  }
  const OffloadedBuffer* const around = At(by_begin_, begin);
  return around != nullptr && size_bytes != 0 &&
         static_cast<uint64_t>(first - around->begin) < around->size_bytes;
}

OffloadHandle OffloadTable::Add(void* begin, uint64_t size_bytes, void* bounce_buffer) {
  OffloadedBuffer& buffer = buffers_[++last_];
  buffer.begin = static_cast<std::byte*>(begin);
  buffer.size_bytes = size_bytes;
  buffer.bounce_buffer = static_cast<std::byte*>(bounce_buffer);
  by_begin_[buffer.begin] = &buffer;
  by_bounce_buffer_[buffer.bounce_buffer] = &buffer;
  return last_;
}

void OffloadTable::Remove(OffloadHandle handle) {
  const auto found = buffers_.find(handle);
  if (found != buffers_.end()) {
    by_begin_.erase(found->second.begin);
    by_bounce_buffer_.erase(found->second.bounce_buffer);
    buffers_.erase(found);
  }
}

OffloadedBuffer* OffloadTable::Find(OffloadHandle handle) {
  const auto found = buffers_.find(handle);
  return found == buffers_.end() ? nullptr : &found->second;
}

const OffloadedBuffer* OffloadTable::Around(const void* begin, uint64_t size_bytes) const {
  const OffloadedBuffer* const buffer = At(by_begin_, begin);
  if (buffer == nullptr) {
    return nullptr;
  }
  const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(begin) - buffer->begin);
  return offset < buffer->size_bytes && size_bytes <= buffer->size_bytes - offset ? buffer
                                                                                  : nullptr;
}

const OffloadedBuffer* OffloadTable::ByBounceBuffer(const void* address) const {
  const OffloadedBuffer* const buffer = At(by_bounce_buffer_, address);
  return buffer != nullptr && static_cast<uint64_t>(static_cast<const std::byte*>(address) -
                                                    buffer->bounce_buffer) < buffer->size_bytes
             ? buffer
             : nullptr;
}

}  // namespace ferry::client
