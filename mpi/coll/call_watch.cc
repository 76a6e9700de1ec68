#include "mpi/coll/call_watch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "common/library_words.h"
#include "mpi/init/process.h"

namespace ferry::mpi {
namespace {

// Agreement's own messages have tag 0.
constexpr int kNoticeTag = 1;
// A rank answers others once it has waited this long.
constexpr uint64_t kListenAfterNs = 100'000'000;
// The longest that it waits for answers.
constexpr uint64_t kMostAnswerNs = 1'000'000'000;
constexpr size_t kMostListed = 16;

std::mutex listeners_mutex;
// The watches that have a receive posted. Not destroyed at exit: a program may leave without
// MPI_Finalize.
std::vector<CallWatch*>& listeners = *new std::vector<CallWatch*>();
bool is_stopped_by_finalize = false;

}  // namespace

std::string RankList(const std::vector<int>& ranks) {
  const size_t listed = std::min(ranks.size(), kMostListed);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < listed; ++i) {
    const bool is_last = i + 1 == ranks.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + std::to_string(ranks[i]);
  }
  return ranks.size() == listed ? text
                                : text + " and " + std::to_string(ranks.size() - listed) + " more";
}

// ---- Waits --------------------------------------------------------------------------------------

CallWatch::Wait::Wait(CallWatch* watch, const Call& call)
    : watch_(*watch), call_(call), begin_ns_(CoarseMonotonicNs()) {
  std::lock_guard lock(watch_.mutex_);
  end_ns_ = watch_.patience_ns_ == 0 ? UINT64_MAX : begin_ns_ + kListenAfterNs;
  watch_.waits_.push_back(this);
}

CallWatch::Wait::~Wait() {
  std::lock_guard lock(watch_.mutex_);
  std::erase(watch_.waits_, this);
}

void CallWatch::Wait::LookNow(const std::function<bool(int peer)>* absent) {
  const uint64_t now_ns = MonotonicNs();
  const bool can_see = absent != nullptr;
  const auto peers = static_cast<int>(watch_.world_ranks_.size());
  std::lock_guard lock(watch_.mutex_);
  if (next_ == Next::kListen) {
    if (!can_see) {
      watch_.StartListening();
    }
    next_ = can_see ? Next::kTell : Next::kAsk;
    end_ns_ = std::max(begin_ns_ + watch_.patience_ns_, now_ns);
    return;
  }
  if (next_ == Next::kAsk) {
    watch_.heard_.assign(watch_.world_ranks_.size(), {});
    for (int peer = 0; peer < peers; ++peer) {
      if (peer != watch_.self_) {
        watch_.Send(peer, true, call_);
      }
    }
    next_ = Next::kTell;
    end_ns_ = now_ns + std::min(watch_.patience_ns_, kMostAnswerNs);
    return;
  }
  std::vector<int> missing;
  for (int peer = 0; peer < peers; ++peer) {
    if (peer != watch_.self_ &&
        (can_see ? (*absent)(peer) : !watch_.heard_[static_cast<size_t>(peer)].any)) {
      missing.push_back(peer);
    }
  }
  if (const std::string text = Tell(missing); !text.empty()) {
    SayToUser(static_cast<int>(front_end->rank()), text);
  }
  watch_.patience_ns_ *= 2;
  next_ = can_see ? Next::kTell : Next::kAsk;
  end_ns_ = now_ns + watch_.patience_ns_;
}

// `absent` empty: all are in it, and it only takes long.
std::string CallWatch::Wait::Tell(const std::vector<int>& absent) const {
  std::string text;
  if (!absent.empty()) {
    text += "; " + RankList(absent) + (absent.size() == 1 ? " has" : " have") +
            " not come to it, or left it before";
  }
  for (size_t peer = 0; peer < watch_.heard_.size(); ++peer) {
    const Heard& heard = watch_.heard_[peer];
    if (heard.any && (heard.number != call_.number || heard.name != call_.name)) {
      text += "; rank " + std::to_string(peer) + " waits in " + heard.name +
              (heard.number == call_.number  ? " in its place"
               : heard.number < call_.number ? ", before it"
                                             : ", after it");
    }
  }
  if (text.empty()) {
    return text;
  }
  const std::string comm = watch_.comm_.name();
  // Gives whole seconds if there are any, so that ranks that came together use the same words.
  const double seconds = static_cast<double>(MonotonicNs() - begin_ns_) * 1e-9;
  char number[32];
  std::snprintf(number, sizeof(number), seconds < 1 ? "%.1g" : "%.0f", seconds);
  return call_.name + (comm.empty() ? "" : " on " + comm) + " has waited for " + number + " s" +
         text + " (ferryctl why says what ranks wait for)";
}

// ---- Notices ------------------------------------------------------------------------------------

CallWatch::CallWatch(const Comm& comm, std::vector<int> world_ranks, int self)
    : comm_(comm),
      world_ranks_(std::move(world_ranks)),
      self_(self),
      patience_ns_(front_end->options().mpi_warn_after_ms * 1'000'000) {}

CallWatch::~CallWatch() {
  {
    std::lock_guard lock(listeners_mutex);
    std::erase(listeners, this);
  }
  if (front_end != nullptr) {
    StopListening();
  }
  if (!sent_.empty()) {  // whoever takes them still reads what they hold
    (void)new std::deque<Sent>(std::move(sent_));
  }
}

client::Message CallWatch::MessageTo(int peer, void* buffer) const {
  return {.buffer = buffer,
          .size_bytes = sizeof(Notice),
          .peer = peer < 0 ? client::kAny : world_ranks_[static_cast<size_t>(peer)],
          .tag = kNoticeTag,
          .context = comm_.context(Traffic::kAgreement)};
}

void CallWatch::PostReceive() {
  const client::Message message = MessageTo(-1, &received_);
  is_listening_ = front_end->messages->StartReceive(message, &receive_) == ErrorCode::kOk;
}

void CallWatch::StartListening() {
  if (is_listening_) {
    return;
  }
  PostReceive();
  std::lock_guard lock(listeners_mutex);
  if (!is_stopped_by_finalize) {
    is_stopped_by_finalize = true;
    Process::AtLeave([] {
      std::lock_guard all(listeners_mutex);
      for (CallWatch* const watch : listeners) {
        watch->StopListening();
      }
      return Failure();
    });
  }
  if (std::find(listeners.begin(), listeners.end(), this) == listeners.end()) {
    listeners.push_back(this);
  }
}

void CallWatch::StopListening() {
  if (is_listening_.exchange(false)) {
    client::Completion ignored;
    (void)front_end->messages->Cancel(receive_);
    front_end->messages->Wait(receive_, &ignored);
  }
}

void CallWatch::ListenNow() {
  std::lock_guard lock(mutex_);
  client::Completion completion;
  while (is_listening_ && front_end->messages->IsComplete(receive_) &&
         front_end->messages->Test(receive_, &completion)) {
    is_listening_ = false;
    if (completion.error != ErrorCode::kOk) {
      break;
    }
    const auto found = std::find(world_ranks_.begin(), world_ranks_.end(), completion.source);
    if (found != world_ranks_.end()) {
      Take(static_cast<int>(found - world_ranks_.begin()));
    }
    PostReceive();
  }
  while (!sent_.empty() && front_end->messages->IsComplete(sent_.front().handle) &&
         front_end->messages->Test(sent_.front().handle, &completion)) {
    sent_.pop_front();
  }
}

void CallWatch::Take(int peer) {
  heard_.resize(world_ranks_.size());
  received_.name[sizeof(received_.name) - 1] = 0;
  heard_[static_cast<size_t>(peer)] = {received_.number, received_.name, true};
  if (const Wait* const wait = First(); received_.is_question != 0 && wait != nullptr) {
    Send(peer, false, wait->call_);
  }
}

const CallWatch::Wait* CallWatch::First() const {
  const auto first = std::min_element(
      waits_.begin(), waits_.end(),
      [](const Wait* a, const Wait* b) { return a->call_.number < b->call_.number; });
  return first == waits_.end() ? nullptr : *first;
}

void CallWatch::Send(int peer, bool is_question, const Call& call) {
  Sent& sent = sent_.emplace_back();
  sent.notice.number = call.number;
  sent.notice.is_question = is_question ? 1 : 0;
  std::strncpy(sent.notice.name, call.name, sizeof(sent.notice.name) - 1);
  const client::Message message = MessageTo(peer, &sent.notice);
  if (front_end->messages->StartSend(message, &sent.handle) != ErrorCode::kOk ||
      sent.handle == client::kCompletedSend) {
    sent_.pop_back();  // it has left, or the peer is gone
  }
}

}  // namespace ferry::mpi
