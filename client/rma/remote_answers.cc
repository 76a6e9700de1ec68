#include "client/rma/remote_answers.h"

namespace ferry::client {
namespace {

// The number of an operation that is not pushed yet, and so not over.
constexpr uint64_t kNoNumber = UINT64_MAX;

static_assert(shm::kAnswers == 64, "RemoteAnswers has a bit of a word for each");
constexpr uint64_t BitOf(uint16_t place) { return uint64_t{1} << place; }

}  // namespace

bool RemoteAnswers::TryTake(const Expected& expected, uint16_t* place) {
  if (taken_ == UINT64_MAX) {
    Harvest();
  }
  if (taken_ == UINT64_MAX) {
    return false;
  }
  *place = static_cast<uint16_t>(__builtin_ctzll(~taken_));
  taken_ |= BitOf(*place);
  uint16_t& serial = serials_[*place];
  ++serial;
  if (serial == static_cast<uint16_t>(shm::LoadRelaxed(session().answers[*place].serial))) {
    ++serial;
  }
  expected_[*place] = expected;
  expected_[*place].serial = serial;
  expected_[*place].number = kNoNumber;
  if (expected.call != nullptr) {
    ++expected.call->outstanding;
  }
  return true;
}

void RemoteAnswers::GiveBack(uint16_t place) {
  if (Call* const call = expected_[place].call; call != nullptr) {
    --call->outstanding;
  }
  taken_ &= ~BitOf(place);
}

// Returns how the operation has ended, if it is over. The daemon stores an answer before the
// number; if only the number is there, it has none.
std::optional<ErrorCode> RemoteAnswers::OutcomeOf(uint16_t place) const {
  const Expected& expected = expected_[place];
  const shm::AnswerLayout& answer = session().answers[place];
  const bool is_over = !expected.is_long && LastOver(expected.rank) >= expected.number;
  // Pairs with the daemon's store of it: acquires the rest of the answer, and its cell.
  if (shm::LoadAcquire(answer.serial) == expected.serial) {
    return static_cast<ErrorCode>(shm::LoadRelaxed(answer.error));
  }
  return is_over ? std::optional(ErrorCode::kCorrupt) : std::nullopt;
}

void RemoteAnswers::Harvest() {
  for (uint64_t places = taken_; places != 0; places &= places - 1) {
    const auto place = static_cast<uint16_t>(__builtin_ctzll(places));
    if (const std::optional<ErrorCode> outcome = OutcomeOf(place); outcome) {
      Collect(place, *outcome);
    }
  }
}

void RemoteAnswers::Collect(uint16_t place, ErrorCode error) {
  const Expected& expected = expected_[place];
  if (error == ErrorCode::kOk && expected.to != nullptr) {
    const void* const found =
        expected.bounce_buffer != nullptr ? expected.bounce_buffer : session().answer_cells[place];
    error = memory_.CopyTo(expected.to, found, expected.size_bytes);
  } else if (error == ErrorCode::kOk && expected.found != nullptr) {
    *expected.found = session().answers[place].value;
  }
  if (expected.bounce_buffer != nullptr) {
    memory_.FreeBounceBuffer(expected.bounce_buffer);
  }
  if (Call* const call = expected.call; call != nullptr) {
    call->error = call->error == ErrorCode::kOk ? error : call->error;
    --call->outstanding;
  } else if (error != ErrorCode::kOk && expected.context != nullptr) {
    expected.context->NoteFailure(expected.rank, error);
  }
  taken_ &= ~BitOf(place);
}

bool RemoteAnswers::AwaitsLong(const OneSidedContext& context) const {
  for (uint64_t places = taken_; places != 0; places &= places - 1) {
    const auto place = static_cast<uint16_t>(__builtin_ctzll(places));
    const Expected& expected = expected_[place];
    if (expected.is_long && expected.context == &context && !OutcomeOf(place)) {
      return true;
    }
  }
  return false;
}

}  // namespace ferry::client
