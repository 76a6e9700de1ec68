#include "shm/journal.h"

#include <cstring>

namespace ferry::shm {

Journal::Journal(JournalLayout* layout, std::byte* session, uint64_t session_bytes,
                 std::byte* inbox, uint64_t inbox_bytes)
    : layout_(layout),
      session_(session),
      session_bytes_(session_bytes),
      inbox_(inbox),
      inbox_bytes_(inbox_bytes) {}

void Journal::SetBytes(void* destination, const void* source, uint32_t size_bytes) {
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  if (size_bytes % sizeof(uint32_t) != 0 ||
      reinterpret_cast<uint64_t>(to) % sizeof(uint32_t) != 0) {
    count_ = kSpoilt;
    return;
  }
  while (size_bytes > 0) {
    const bool wide =
        size_bytes >= sizeof(uint64_t) && reinterpret_cast<uint64_t>(to) % sizeof(uint64_t) == 0;
    const uint32_t step = wide ? sizeof(uint64_t) : sizeof(uint32_t);
    uint64_t value = 0;
    std::memcpy(&value, from, step);  // little-endian: a narrow word is the low half
    Add(to, wide ? kJournalWide : 0, value);
    to += step;
    from += step;
    size_bytes -= step;
  }
}

bool Journal::IsValid(const JournalEntry& entry) const {
  const uint64_t size_bytes = (entry.place & kJournalInbox) != 0 ? inbox_bytes_ : session_bytes_;
  const uint64_t offset = entry.place & ~(kJournalInbox | kJournalWide);
  const uint64_t width = (entry.place & kJournalWide) != 0 ? sizeof(uint64_t) : sizeof(uint32_t);
  return offset % width == 0 && size_bytes >= width && offset <= size_bytes - width;
}

Journal::Store Journal::StoreOf(const JournalEntry& entry) const {
  std::byte* const segment = (entry.place & kJournalInbox) != 0 ? inbox_ : session_;
  const auto word =
      reinterpret_cast<uint64_t>(segment + (entry.place & ~(kJournalInbox | kJournalWide)));
  return {(entry.place & kJournalWide) != 0 ? word | kWideStore : word, entry.value};
}

bool Journal::Recover() {
  count_ = 0;
  // Pairs with Journal::Commit: a count means that all the entries are there.
  const uint32_t count = LoadAcquire(layout_->count);
  if (count == 0) {
    return true;
  }
  if (count > kJournalEntries) {
    return false;
  }
  for (uint32_t i = 0; i < count; ++i) {
    const JournalEntry entry = {LoadRelaxed(layout_->entries[i].place),
                                LoadRelaxed(layout_->entries[i].value)};  // once, then checked
    if (!IsValid(entry)) {
      return false;
    }
    stores_[i] = StoreOf(entry);
  }
  Apply(count);
  StoreRelaxed(layout_->recoveries, LoadRelaxed(layout_->recoveries) + 1);
  StoreRelease(layout_->count, 0);  // Pairs with Journal::Recover of the next successor.
  std::atomic_signal_fence(std::memory_order_seq_cst);  // as in Commit
  return true;
}

bool Journal::Covers(const void* start, uint64_t size_bytes) const {
  const auto within = [&](const std::byte* segment, uint64_t segment_bytes) {
    const uint64_t offset = reinterpret_cast<uint64_t>(start) - reinterpret_cast<uint64_t>(segment);
    return offset <= segment_bytes && size_bytes <= segment_bytes - offset;
  };
  return within(session_, session_bytes_) || within(inbox_, inbox_bytes_);
}

}  // namespace ferry::shm
