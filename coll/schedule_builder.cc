#include "coll/schedule_builder.h"

#include <algorithm>

namespace ferry::collective {
namespace {

constexpr size_t kScratchAlignment = 64;

}  // namespace

// ---- Which steps wait for which -----------------------------------------------------------------

// Makes `at` the first byte of a stretch if it lies within one.
void ScheduleBuilder::Split(Stretches* stretches, size_t at) {
  auto next = stretches->upper_bound(at);
  if (next == stretches->begin()) {
    return;
  }
  auto [first, stretch] = *std::prev(next);
  if (first < at && at < stretch.end) {
    std::prev(next)->second.end = at;
    stretches->emplace_hint(next, at, std::move(stretch));
  }
}

void ScheduleBuilder::WaitFor(StepId step) {
  if (step != kNobody) {
    waits_.push_back(step);
  }
}

void ScheduleBuilder::NoteRead(const Range& range) {
  if (range.size_bytes == 0) {
    return;
  }
  Stretches& stretches = stretches_[static_cast<size_t>(range.place)];
  const size_t end = range.offset_bytes + range.size_bytes;
  Split(&stretches, range.offset_bytes);
  Split(&stretches, end);
  size_t at = range.offset_bytes;
  auto it = stretches.lower_bound(at);
  while (at < end) {
    if (it == stretches.end() || it->first > at) {
      // No step has touched these bytes: they are as the user left them.
      const size_t gap_end = it == stretches.end() ? end : std::min(end, it->first);
      it = stretches.emplace_hint(it, at, Stretch{gap_end, kNobody, {}});
    }
    WaitFor(it->second.writer);
    it->second.readers.push_back(NextStep());
    at = it->second.end;
    ++it;
  }
}

void ScheduleBuilder::NoteWrite(const Range& range) {
  if (range.size_bytes == 0) {
    return;
  }
  Stretches& stretches = stretches_[static_cast<size_t>(range.place)];
  const size_t end = range.offset_bytes + range.size_bytes;
  Split(&stretches, range.offset_bytes);
  Split(&stretches, end);
  auto it = stretches.lower_bound(range.offset_bytes);
  while (it != stretches.end() && it->first < end) {
    // Readers have themselves waited for the writer.
    for (const StepId reader : it->second.readers) {
      if (reader != NextStep()) {
        WaitFor(reader);
      }
    }
    WaitFor(it->second.writer);
    it = stretches.erase(it);
  }
  stretches.emplace_hint(it, range.offset_bytes, Stretch{end, NextStep(), {}});
}

// Returns true if another step of waits_ itself waits for `step`.
bool ScheduleBuilder::IsImplied(StepId step) const {
  return std::any_of(waits_.begin(), waits_.end(), [&](StepId other) {
    const std::span<const StepId> others = schedule_.graph.WaitsOf(other);
    return other != step && std::find(others.begin(), others.end(), step) != others.end();
  });
}

void ScheduleBuilder::Add(const Step& step) {
  if (fence_ != kNobody) {
    waits_.push_back(fence_);
  }
  std::sort(waits_.begin(), waits_.end());
  waits_.erase(std::unique(waits_.begin(), waits_.end()), waits_.end());
  // The fence already waits for all steps before it.
  if (fence_ != kNobody) {
    waits_.erase(waits_.begin(), std::lower_bound(waits_.begin(), waits_.end(), fence_));
    if (waits_.size() > 1) {
      waits_.erase(waits_.begin());  // and the fence through the others, all of which are after it
    }
  }
  std::vector<StepId> needed;
  std::copy_if(waits_.begin(), waits_.end(), std::back_inserter(needed),
               [&](StepId wait) { return !IsImplied(wait); });
  schedule_.graph.Add(needed);
  schedule_.steps.push_back(step);
  waits_.clear();
}

// ---- The calls of algorithms --------------------------------------------------------------------

void ScheduleBuilder::Send(int peer, const Range& from) {
  if (from.size_bytes == 0) {
    return;
  }
  NoteRead(from);
  Add({.kind = StepKind::kSend, .peer = peer, .tag = sent_[peer]++, .left = from});
}

void ScheduleBuilder::Receive(int peer, const Range& to) {
  if (to.size_bytes == 0) {
    return;
  }
  NoteWrite(to);
  Add({.kind = StepKind::kReceive, .peer = peer, .tag = received_[peer]++, .to = to});
}

void ScheduleBuilder::Copy(const Range& from, const Range& to) {
  if (from.size_bytes == 0 || from == to) {
    return;
  }
  NoteRead(from);
  NoteWrite(to);
  Add({.kind = StepKind::kCopy, .left = from, .to = to});
}

void ScheduleBuilder::Reduce(const Range& left, const Range& right, const Range& to,
                             uint32_t operation) {
  if (to.size_bytes == 0) {
    return;
  }
  NoteRead(left);
  NoteRead(right);
  NoteWrite(to);
  Add({.kind = StepKind::kReduce, .left = left, .right = right, .to = to, .operation = operation});
}

void ScheduleBuilder::Notify(int peer) {
  Add({.kind = StepKind::kSend, .peer = peer, .tag = sent_[peer]++});
}

void ScheduleBuilder::Await(int peer) {
  Add({.kind = StepKind::kReceive, .peer = peer, .tag = received_[peer]++});
}

void ScheduleBuilder::Fence() {
  if (schedule_.steps.empty() || fence_ == NextStep() - 1) {
    return;
  }
  std::vector<bool> has_follower(schedule_.steps.size());
  for (StepId step = 0; step < NextStep(); ++step) {
    for (const StepId wait : schedule_.graph.WaitsOf(step)) {
      has_follower[wait] = true;
    }
  }
  const StepId first = fence_ == kNobody ? 0 : fence_;
  for (StepId step = first; step < schedule_.steps.size(); ++step) {
    if (!has_follower[step]) {
      waits_.push_back(step);
    }
  }
  fence_ = kNobody;  // the join waits for those after the last fence, hence for that fence
  const StepId join = NextStep();
  Add({.kind = StepKind::kJoin});
  fence_ = join;
}

Range ScheduleBuilder::Scratch(size_t size_bytes) {
  const size_t offset = schedule_.scratch_bytes;
  schedule_.scratch_bytes +=
      (size_bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
  return {Place::kScratch, offset, size_bytes};
}

}  // namespace ferry::collective
