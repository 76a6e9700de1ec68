#include "mpi/coll/call_watch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "client/api/call_words.h"
#include "common/library_words.h"
#include "mpi/base/connection.h"

namespace ferry::mpi {
namespace {

// Agreement's own messages have tag 0.
constexpr int kNoticeTag = 1;
// A rank answers others once it has waited this long.
constexpr uint64_t kListenAfterNs = 100'000'000;
// The longest that it waits for answers.
constexpr uint64_t kMostAnswerNs = 1'000'000'000;
constexpr size_t kMostListed = 16;
// The most questions and answers that leave, and that are taken in, in one look.
constexpr int kMostAtOnce = 16;
// The most ranks that wait for an answer. A rank that gets none asks again.
constexpr size_t kMostToAnswer = 64;

// The length of a row: kGridRow, or the square root of a larger size, rounded up.
size_t RowOf(size_t size) {
  size_t row = kGridRow;
  while (row * row < size) {
    ++row;
  }
  return row;
}

// Whom member `self` of a grid of these ranks asks.
Questions AskInGrid(size_t self, const std::vector<int>& ranks) {
  const size_t row = RowOf(ranks.size());
  const size_t first = self / row * row;
  Questions questions;
  for (size_t i = first; i < std::min(first + row, ranks.size()); ++i) {
    if (i != self) {
      questions.peers.push_back(ranks[i]);
    }
    if (i < self) {
      questions.speakers.push_back(ranks[i]);
    }
  }
  for (size_t i = self % row; i < ranks.size(); i += row) {
    if (i != self) {
      questions.peers.push_back(ranks[i]);
    }
  }
  return questions;
}

// Adds the first ranks of other nodes to those whom the one of node `self` asks.
void AskOtherNodes(size_t self, const std::vector<int>& first_ranks, std::vector<int>* peers) {
  const size_t nodes = first_ranks.size();
  std::set<size_t> asked;
  if (nodes <= kMostNodesInRow) {
    for (size_t node = 0; node < nodes; ++node) {
      asked.insert(node);
    }
  }
  for (size_t distance = 1; distance < nodes; distance *= 2) {
    asked.insert((self + distance) % nodes);
    asked.insert((self + nodes - distance) % nodes);
  }
  asked.erase(self);
  for (const size_t node : asked) {
    peers->push_back(first_ranks[node]);
  }
}

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
  if (has_shown_) {
    front_end->calls->NoteMissing(shm::kCallNoRank, 0);
  }
  std::lock_guard lock(watch_.mutex_);
  std::erase(watch_.waits_, this);
  if (watch_.waits_.empty()) {
    watch_.is_listening_ = false;  // short waits pay nothing for a long one before
  }
}

void CallWatch::Wait::LookNow(const std::function<bool(int peer)>* absent) {
  const uint64_t now_ns = MonotonicNs();
  const bool can_see = absent != nullptr;
  std::lock_guard lock(watch_.mutex_);
  if (next_ == Next::kListen) {
    if (can_see) {
      watch_.ShowMissing(FindMissing(absent));
    }
    watch_.is_listening_ = watch_.is_listening_ || !can_see;
    next_ = can_see ? Next::kTell : Next::kAsk;
    end_ns_ = std::max(begin_ns_ + watch_.patience_ns_, now_ns);
    return;
  }
  if (next_ == Next::kAsk) {
    watch_.StartAsking(call_);
    next_ = Next::kTell;
    end_ns_ = now_ns + std::min(watch_.patience_ns_, kMostAnswerNs);
    return;
  }
  const std::vector<int> missing = FindMissing(absent);
  watch_.ShowMissing(missing);
  has_shown_ = !can_see;  // a board takes its own word back
  if (can_see || watch_.IsSpeaker(call_)) {
    if (const std::string text = Tell(missing); !text.empty()) {
      SayToUser(static_cast<int>(front_end->rank()), text);
    }
  }
  watch_.patience_ns_ *= 2;
  next_ = can_see ? Next::kTell : Next::kAsk;
  end_ns_ = now_ns + watch_.patience_ns_;
}

std::vector<int> CallWatch::Wait::FindMissing(const std::function<bool(int peer)>* absent) const {
  std::vector<int> missing;
  if (absent == nullptr) {
    std::copy_if(watch_.asked_.begin(), watch_.asked_.end(), std::back_inserter(missing),
                 [this](int peer) { return !watch_.heard_.contains(peer); });
    std::sort(missing.begin(), missing.end());
    return missing;
  }
  for (int peer = 0; peer < static_cast<int>(watch_.world_ranks_.size()); ++peer) {
    if (peer != watch_.self_ && (*absent)(peer)) {
      missing.push_back(peer);
    }
  }
  return missing;
}

// `absent` empty: all are in it, and it only takes long.
std::string CallWatch::Wait::Tell(const std::vector<int>& absent) const {
  std::string text;
  if (!absent.empty()) {
    text += "; " + RankList(absent) + (absent.size() == 1 ? " has" : " have") +
            " not come to it, or left it before";
  }
  for (const auto& [peer, heard] : watch_.heard_) {
    if (heard.number != call_.number || heard.name != call_.name) {
      text += "; rank " + std::to_string(peer) + " waits in " + heard.name +
              (heard.number == call_.number  ? " in its place"
               : heard.number < call_.number ? ", before it"
                                             : ", after it");
    }
  }
  if (text.empty()) {
    return text;
  }
  // In the words of `ferryctl why`, unless the thread waits for a request of it among others.
  const client::CallNote* const note = front_end->calls->current();
  const bool is_it = note != nullptr && note->has_number && note->number == call_.number;
  std::string call = is_it ? client::PhraseOf(*note) : "";
  if (call.empty()) {
    const std::string comm = watch_.comm_.name();
    call = call_.name + (comm.empty() ? "" : " on " + comm);
  }
  // Gives whole seconds if there are any, so that ranks that came together use the same words.
  const double seconds = static_cast<double>(MonotonicNs() - begin_ns_) * 1e-9;
  char number[32];
  std::snprintf(number, sizeof(number), seconds < 1 ? "%.1g" : "%.0f", seconds);
  return call + " has waited for " + number + " s" + text +
         " (ferryctl why says what ranks wait for)";
}

// For those who look at this rank (client/api/calls.h).
void CallWatch::ShowMissing(const std::vector<int>& missing) const {
  if (!missing.empty()) {
    front_end->calls->NoteMissing(world_ranks_[static_cast<size_t>(missing.front())],
                                  static_cast<uint32_t>(missing.size()));
  }
}

// ---- Notices ------------------------------------------------------------------------------------

CallWatch::CallWatch(const Comm& comm, NumberList world_ranks, int self)
    : comm_(comm),
      world_ranks_(std::move(world_ranks)),
      self_(self),
      patience_ns_(front_end->options().mpi_warn_after_ms * 1'000'000) {}

client::Message CallWatch::MessageTo(int peer, void* buffer) const {
  return {.buffer = buffer,
          .size_bytes = sizeof(Notice),
          .peer = peer < 0 ? client::kAny : world_ranks_[static_cast<size_t>(peer)],
          .tag = kNoticeTag,
          .context = comm_.context(Traffic::kAgreement)};
}

// Ranks that an earlier round has not come to are first.
void CallWatch::StartAsking(const Call& call) {
  std::deque<int> order;
  Questions questions =
      PlanQuestions(self_, NumberList::Of(world_ranks_.size(), [this](size_t peer) {
                      return front_end->NodeOf(static_cast<uint32_t>(world_ranks_[peer]));
                    }));
  speakers_ = std::move(questions.speakers);
  for (const int peer : questions.peers) {
    const bool is_left = std::find(to_ask_.begin(), to_ask_.end(), peer) != to_ask_.end();
    is_left ? order.push_front(peer) : order.push_back(peer);
  }
  to_ask_ = std::move(order);
  asked_call_ = call;
  asked_.clear();
  heard_.clear();
  SendWaiting();
}

void CallWatch::ListenNow() {
  std::lock_guard lock(mutex_);
  client::Completion found;
  for (int taken = 0; taken < kMostAtOnce; ++taken) {
    if (front_end->messages->Probe(MessageTo(-1, nullptr), /*block=*/false, &found) !=
            ErrorCode::kOk ||
        !Receive(found)) {
      break;
    }
  }
  SendWaiting();
}

// The message is there, so its receive is over at once. While the program has all requests in use,
// the message stays where it is.
bool CallWatch::Receive(const client::Completion& found) {
  client::Message message = MessageTo(-1, &received_);
  message.peer = found.source;
  client::Completion completion;
  if (!front_end->messages->ReceiveNow(message, &completion)) {
    client::RequestHandle handle = 0;
    if (front_end->messages->StartReceive(message, &handle) != ErrorCode::kOk) {
      return false;
    }
    front_end->messages->Wait(handle, &completion);
  }
  const size_t from = world_ranks_.IndexOf(completion.source);
  if (completion.error == ErrorCode::kOk && from != world_ranks_.size()) {
    Take(static_cast<int>(from));
  }
  return true;
}

void CallWatch::Take(int peer) {
  received_.name[sizeof(received_.name) - 1] = 0;
  heard_[peer] = {received_.number, received_.name};
  if (received_.is_question != 0 && to_answer_.size() < kMostToAnswer &&
      std::find(to_answer_.begin(), to_answer_.end(), peer) == to_answer_.end()) {
    to_answer_.push_back(peer);
  }
}

// Sends what can leave at once; the rest at a later look. Answers go first: others wait for them.
void CallWatch::SendWaiting() {
  int left = kMostAtOnce;
  const Wait* const wait = First();
  while (wait == nullptr && !to_answer_.empty()) {
    to_answer_.pop_front();  // this rank is in no call any more
  }
  for (; left > 0 && !to_answer_.empty() && Send(to_answer_.front(), false, wait->call_); --left) {
    to_answer_.pop_front();
  }
  for (; left > 0 && !to_ask_.empty() && Send(to_ask_.front(), true, asked_call_); --left) {
    asked_.push_back(to_ask_.front());
    to_ask_.pop_front();
  }
}

bool CallWatch::IsSpeaker(const Call& call) const {
  return std::none_of(speakers_.begin(), speakers_.end(), [&](int peer) {
    const auto found = heard_.find(peer);
    return found != heard_.end() && found->second.number == call.number &&
           found->second.name == call.name;
  });
}

const CallWatch::Wait* CallWatch::First() const {
  const auto first = std::min_element(
      waits_.begin(), waits_.end(),
      [](const Wait* a, const Wait* b) { return a->call_.number < b->call_.number; });
  return first == waits_.end() ? nullptr : *first;
}

// False: it cannot leave now. A message to a peer that is gone counts as sent: it would stay in the
// way of the others.
bool CallWatch::Send(int peer, bool is_question, const Call& call) {
  Notice notice;
  notice.number = call.number;
  notice.is_question = is_question ? 1 : 0;
  std::strncpy(notice.name, call.name, sizeof(notice.name) - 1);
  const auto rank = static_cast<uint32_t>(world_ranks_[static_cast<size_t>(peer)]);
  return front_end->messages->SendNow(MessageTo(peer, &notice)) ||
         front_end->peers->PeerState(rank) != ErrorCode::kOk;
}

Questions PlanQuestions(int self, const NumberList& node_of) {
  std::vector<int> first_ranks;  // of the nodes, in the order in which ranks name them
  std::unordered_map<int, size_t> places;
  std::vector<int> all;
  std::vector<int> own;  // the ranks of this node
  const auto size = static_cast<int>(node_of.size());
  for (int rank = 0; rank < size; ++rank) {
    const int node = node_of[static_cast<size_t>(rank)];
    if (places.emplace(node, first_ranks.size()).second) {
      first_ranks.push_back(rank);
    }
    if (node == node_of[static_cast<size_t>(self)]) {
      own.push_back(rank);
    }
    if (size <= kGridRow) {
      all.push_back(rank);
    }
  }
  if (size <= kGridRow && first_ranks.size() <= kMostNodesInRow) {
    all.erase(all.begin() + self);
    return {std::move(all), {}};
  }
  const auto place = std::find(own.begin(), own.end(), self) - own.begin();
  Questions questions = AskInGrid(static_cast<size_t>(place), own);
  if (place == 0) {
    AskOtherNodes(places[node_of[static_cast<size_t>(self)]], first_ranks, &questions.peers);
  }
  return questions;
}

}  // namespace ferry::mpi
