#include "daemon/jobs/pair_book.h"

#include <algorithm>
#include <string>
#include <utility>

#include "shm/atomic.h"
#include "shm/counter.h"
#include "shm/pair_move.h"
#include "shm/wake.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kCellAlignment = 64;
constexpr uint32_t kMostForeign = 1 << 16;  // of one rank elsewhere

std::string KeyText(const control::PairKey& key) {
  return "the pair " + std::to_string(key.source()) + " to " + std::to_string(key.destination()) +
         ", tag " + std::to_string(key.tag()) + ", number " + std::to_string(key.ordinal());
}

// The size of a receive's cell, and the bytes for which it has room. In device memory the cell
// takes messages that packets bring.
uint64_t CellBytes(const RegionPlace& window, uint64_t size_bytes) {
  return window.region != nullptr && window.region->by_stream
             ? uint64_t{shm::kCellBytes}
             : (size_bytes + kCellAlignment - 1) / kCellAlignment * kCellAlignment;
}

enum class Reach { kHeap, kAnybody, kStreams };

// Finds `bytes` at a place in the session's memory: in its heap, in memory that any process can
// map, or in memory that streams reach. Lent memory does not count, because peers write into what
// is found here.
StatusOr<RegionPlace> Find(const Session& session, const attach::MemoryPlace& place, uint64_t bytes,
                           Reach reach) {
  RegionPlace found{session.FindRegion(place.region), place.offset};
  if (found.region == nullptr || found.region->lent ||
      (found.region->by_stream && reach != Reach::kStreams) ||
      !found.region->IsInside(place.offset, bytes) ||
      (reach == Reach::kHeap &&
       (found.region->kind != RegionKind::kHostHeap || place.offset % kCellAlignment != 0))) {
    return Status(ErrorCode::kInvalidBuffer,
                  std::to_string(bytes) + " bytes at " + std::to_string(place.offset) +
                      " are not in region " + std::to_string(place.region) + " of rank " +
                      std::to_string(session.rank) +
                      (reach == Reach::kHeap ? ", its heap, aligned to 64"
                                             : ", or it is lent, or only streams reach them"));
  }
  return found;
}

// The key in the form in which daemons send it to each other.
control::PairKey NewsKey(const attach::PairKey& key) {
  control::PairKey news;
  news.set_context(key.context);
  news.set_source(key.source);
  news.set_destination(key.destination);
  news.set_tag(key.tag);
  news.set_ordinal(key.ordinal);
  return news;
}

shm::Location LocationOf(const RegionPlace& place) {
  return place.region == nullptr ? shm::Location{}
                                 : shm::Location{place.region->id, 0, place.offset};
}

// True for a window between nodes that the NIC alone reaches. Short messages come in packets, which
// a CPU copies: their sends lie in other memory, and a receive, which may get some, has a cell for
// them.
bool MayBeNicWindow(const attach::PairOffer& offer, bool is_send) {
  return offer.size_bytes > shm::kCellBytes && (is_send || offer.cell_count == 1);
}

}  // namespace

PairBook::PairBook(const JobPlan& plan, DataPlane& data_plane, uint64_t& last_pair, Tell tell)
    : plan_(plan), data_plane_(data_plane), last_pair_(last_pair), tell_(std::move(tell)) {}

PairBook::Key PairBook::KeyOf(const control::PairKey& key) {
  return {key.context(), key.source(), key.destination(), key.tag(), key.ordinal()};
}

// ---- Offers of ranks here -----------------------------------------------------------------------

Status PairBook::Check(const Session& session, const attach::PairOffer& offer, bool is_send,
                       Half* half) const {
  const control::PairKey key = NewsKey(offer.key);
  const uint32_t own = is_send ? key.source() : key.destination();
  const uint32_t other = is_send ? key.destination() : key.source();
  if (own != session.rank || other >= plan_.size()) {
    return {ErrorCode::kInvalidRank, KeyText(key) + " is no pair of rank " +
                                         std::to_string(session.rank) + " with a rank of the job"};
  }
  if (offer.mode > static_cast<uint32_t>(shm::SendMode::kSynchronous)) {
    return {ErrorCode::kInvalidArgument, "there is no send mode " + std::to_string(offer.mode)};
  }
  if (const auto known = matches_.find(KeyOf(key)); known != matches_.end()) {
    const Match& match = known->second;
    if (match.half(is_send) || match.gone(is_send)) {
      return {ErrorCode::kAlreadyExists, KeyText(key) + " has had this side before"};
    }
  }
  auto end = Find(session, offer.end, sizeof(shm::PairLayout), Reach::kHeap);
  FERRY_RETURN_IF_ERROR(end.status());
  half->end = *end;
  if (offer.size_bytes != 0) {
    const bool may_be_device = IsLocal(other) || MayBeNicWindow(offer, is_send);
    auto window = Find(session, offer.window, offer.size_bytes,
                       may_be_device ? Reach::kStreams : Reach::kAnybody);
    FERRY_RETURN_IF_ERROR(window.status());
    half->window = *window;
  }
  if (offer.cell_count != 0 && !is_send) {
    const uint64_t cell_bytes = CellBytes(half->window, offer.size_bytes);
    uint64_t bytes = 0;
    if (cell_bytes < std::min<uint64_t>(offer.size_bytes, shm::kCellBytes) ||
        __builtin_mul_overflow(cell_bytes, offer.cell_count, &bytes)) {
      return {ErrorCode::kInvalidArgument, "the cells are longer than any memory"};
    }
    auto cells = Find(session, offer.cells, bytes, Reach::kHeap);
    FERRY_RETURN_IF_ERROR(cells.status());
    half->cells = *cells;
    half->cell_count = offer.cell_count;
  }
  half->size_bytes = offer.size_bytes;
  half->mode = static_cast<shm::SendMode>(offer.mode);
  return {};
}

std::vector<NicWindow> PairBook::NicWindows(const Session& session, bool sends,
                                            std::span<const attach::PairOffer> offers) const {
  std::vector<NicWindow> windows;
  for (const attach::PairOffer& offer : offers) {
    const uint32_t other = sends ? offer.key.destination : offer.key.source;
    const std::shared_ptr<const Region> region =
        other < plan_.size() && !IsLocal(other) && offer.size_bytes != 0
            ? session.FindRegion(offer.window.region)
            : nullptr;
    if (region != nullptr && region->by_stream) {
      windows.push_back({region->id, offer.window.offset, offer.size_bytes});
    }
  }
  return windows;
}

Status PairBook::Offer(const std::shared_ptr<Session>& session, bool sends,
                       std::span<const attach::PairOffer> offers) {
  uint32_t& offered = offered_[session->rank];
  const auto count = static_cast<uint32_t>(offers.size());
  if (count > session->request_limit || offered > session->request_limit - count) {
    return {ErrorCode::kLimitExceeded,
            "rank " + std::to_string(session->rank) + " offers more than it has requests"};
  }
  if (left_[session->rank] >= session->request_limit) {
    return {ErrorCode::kLimitExceeded,
            "rank " + std::to_string(session->rank) + " has taken back " +
                std::to_string(left_[session->rank]) +
                " offers of which the other ranks have not heard, or which they have not made yet"};
  }
  std::vector<std::pair<control::PairKey, Half>> halves;
  std::vector<Key> keys;
  for (const attach::PairOffer& offer : offers) {
    Half half;
    half.session = session;
    FERRY_RETURN_IF_ERROR(Check(*session, offer, sends, &half));
    halves.emplace_back(NewsKey(offer.key), std::move(half));
    keys.push_back(KeyOf(halves.back().first));
  }
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) {
    return {ErrorCode::kAlreadyExists, "one request is offered twice"};
  }
  offered += count;
  for (auto& [key, half] : halves) {
    Match& match = matches_[KeyOf(key)];
    match.key = key;
    const bool is_send = sends;
    const uint32_t other = match.rank(!is_send);
    if (const auto ended = ended_ranks_.find(other); ended != ended_ranks_.end()) {
      match.ended = match.ended == ErrorCode::kOk ? ended->second : match.ended;
      match.gone(!is_send) = true;
    }
    if (is_send && !IsLocal(other)) {
      half.number = ++last_pair_;
    }
    match.half(is_send) = std::move(half);
    if (match.ended != ErrorCode::kOk) {
      EndHalf(match, is_send, {match.ended, 0});
    } else if (is_send && !IsLocal(other)) {
      control::PairNews news;
      news.set_kind(control::PairNews::SEND_OFFERED);
      *news.mutable_key() = key;
      news.set_size_bytes(match.send->size_bytes);
      news.set_mode(static_cast<uint32_t>(match.send->mode));
      news.set_channel(match.send->number);
      tell_(plan_.node_of_rank[other], news);
    } else {
      TryPair(match);
    }
  }
  return {};
}

// ---- Pairing: where the receiver lives ----------------------------------------------------------

void PairBook::TryPair(Match& match) {
  if (!match.send || !match.receive) {
    return;
  }
  if (match.send->size_bytes > match.receive->size_bytes) {
    return EndBoth(match, ErrorCode::kTruncated);
  }
  match.receive->mode = match.send->mode;
  if (match.send->is_here()) {
    MarkMatched(match, true);
    return MarkMatched(match, false);
  }
  match.receive->number = ++last_pair_;
  if (const Status status = Install(match, false); !status.ok()) {
    return EndBoth(match, status.code());
  }
  control::PairNews news;
  news.set_kind(control::PairNews::PAIRED);
  *news.mutable_key() = match.key;
  news.set_channel(match.receive->number);
  news.set_cells(match.receive->cell_count);
  tell_(plan_.node_of_rank[match.key.source()], news);
}

// Has the data plane serve an end whose other end is on another node.
Status PairBook::Install(Match& match, bool is_send) {
  Half& half = *match.half(is_send);
  const std::optional<Half>& other = match.half(!is_send);
  PairPlan plan;
  plan.name = {plan_.job_id, match.rank(is_send), half.number};
  plan.peer = match.rank(!is_send);
  plan.is_send = is_send;
  plan.mode = half.mode;
  plan.size_bytes = match.send->size_bytes;
  plan.peer_number = other ? other->number : 0;
  plan.end = half.end;
  plan.window = half.window;
  plan.cells = half.cells;
  plan.cell_count = match.receive->cell_count;
  plan.cell_bytes = CellBytes(half.window, half.size_bytes);
  FERRY_RETURN_IF_ERROR(data_plane_.AddPair(plan));
  half.in_data_plane = true;
  return {};
}

// Stores `state` last: a reader that sees it sees the other words, too.
void PairBook::Publish(const Half& half, shm::PairState state, ErrorCode error) {
  shm::PairWords& words = half.layout()->pair;
  words.error = static_cast<int32_t>(error);
  shm::StoreRelease(words.state, static_cast<uint32_t>(state));
  shm::Wake(&half.session->inbox()->wake).Publish();
}

void PairBook::MarkMatched(Match& match, bool is_send) {
  Half& half = *match.half(is_send);
  const std::optional<Half>& other = match.half(!is_send);
  shm::PairWords& words = half.layout()->pair;
  words.mode = static_cast<uint32_t>(half.mode);
  words.size_bytes = is_send ? half.size_bytes : match.send->size_bytes;
  words.end = words.window = {};
  if (other && other->is_here()) {
    words.end = LocationOf(other->end);
    words.window = LocationOf(other->window);
  }
  half.matched = true;
  Publish(half, shm::PairState::kMatched, ErrorCode::kOk);
}

// ---- News of other nodes ------------------------------------------------------------------------

Status PairBook::OnNews(uint32_t node, const control::PairNews& news) {
  const control::PairKey& key = news.key();
  const bool from_send = news.kind() == control::PairNews::SEND_OFFERED ||
                         (news.kind() == control::PairNews::ENDED && key.source() < plan_.size() &&
                          plan_.node_of_rank[key.source()] == node);
  const uint32_t theirs = from_send ? key.source() : key.destination();
  const uint32_t ours = from_send ? key.destination() : key.source();
  if (theirs >= plan_.size() || ours >= plan_.size() || plan_.node_of_rank[theirs] != node ||
      !IsLocal(ours)) {
    return {ErrorCode::kInvalidArgument,
            KeyText(key) + " is none of node " + std::to_string(node) + " with this one"};
  }
  if (news.kind() == control::PairNews::PAIRED && !matches_.contains(KeyOf(key))) {
    return {};  // its send was taken back meanwhile
  }
  const auto [found, is_new] = matches_.try_emplace(KeyOf(key));
  Match& match = found->second;
  match.key = key;
  if (is_new) {
    match.foreign = true;
    if (++foreign_[theirs] > kMostForeign) {
      Erase(found);
      return {ErrorCode::kLimitExceeded, "rank " + std::to_string(theirs) + " has offered " +
                                             std::to_string(kMostForeign) +
                                             " requests that no rank here has wanted"};
    }
  }
  switch (news.kind()) {
    case control::PairNews::SEND_OFFERED:
      if (match.send || match.send_gone) {
        return {};  // a repetition
      }
      match.send = Half();
      match.send->size_bytes = news.size_bytes();
      match.send->mode = static_cast<shm::SendMode>(
          std::min(news.mode(), static_cast<uint32_t>(shm::SendMode::kSynchronous)));
      match.send->number = news.channel();
      if (match.ended != ErrorCode::kOk) {
        TellEnd(match, true, {match.ended, 0});
        match.send.reset();
        match.send_gone = true;
      } else {
        TryPair(match);
      }
      return {};
    case control::PairNews::PAIRED:
      // A pair that has ended meanwhile, as by the death of the rank that receives, stays so.
      if (match.send && !match.send->matched && match.ended == ErrorCode::kOk) {
        match.receive = Half();
        match.receive->number = news.channel();
        match.receive->cell_count = news.cells();
        if (const Status status = Install(match, true); !status.ok()) {
          EndBoth(match, status.code());
        } else {
          MarkMatched(match, true);
        }
      }
      break;
    case control::PairNews::ENDED:
      // A sender that has been told of its partner may send, and free its request, before the
      // answer of its daemon is here: what it has sent is received.
      if (from_send && news.rounds() > 0 && match.send && match.receive &&
          match.receive->in_data_plane && !match.receive->matched) {
        MarkMatched(match, false);
      }
      Leave(match, from_send,
            {news.error() == 0 ? ErrorCode::kInvalidRequest : static_cast<ErrorCode>(news.error()),
             news.rounds()});
      break;
    default:
      return {ErrorCode::kInvalidArgument, "unknown news of " + KeyText(key)};
  }
  EraseIfOver(key);
  return {};
}

void PairBook::OnTold(uint32_t /*node*/, const control::PairNews& news, const Status& status) {
  if (news.kind() == control::PairNews::ENDED) {
    if (const auto told = untold_.find(KeyOf(news.key())); told != untold_.end()) {
      --left_[RankHere(*told)];
      untold_.erase(told);
    }
  }
  const auto found = matches_.find(KeyOf(news.key()));
  if (found == matches_.end()) {
    return;
  }
  Match& match = found->second;
  if (!status.ok()) {
    if (news.kind() != control::PairNews::ENDED) {
      EndBoth(match, status.code());
    }
  } else if (news.kind() == control::PairNews::PAIRED && match.receive && match.send &&
             !match.receive->matched) {
    MarkMatched(match, false);
  }
}

// ---- Ends ---------------------------------------------------------------------------------------

void PairBook::Drop(std::optional<Half>& half) {
  if (half && half->is_here()) {
    --offered_[half->session->rank];
  }
  half.reset();
}

// Tells a side here that it has lost its partner. The side stays in the book, untouched, until its
// rank takes it back.
void PairBook::EndHalf(const Match& match, bool is_send, const Ending& ending) {
  const std::optional<Half>& half = match.half(is_send);
  if (!half->matched) {
    if (half->in_data_plane) {
      data_plane_.EndPair({plan_.job_id, half->session->rank, half->number}, 0, ending.error);
    }
    return Publish(*half, shm::PairState::kFailed, ending.error);
  }
  if (half->in_data_plane) {
    return data_plane_.EndPair({plan_.job_id, half->session->rank, half->number}, ending.rounds,
                               ending.error);
  }
  // An end that leaves before it has looked at its match closes no gate: without this, a start here
  // would count in the block of the leaving end, which may be another pair's by then.
  shm::ShutGate(*half->layout());
  shm::Counter(&half->layout()->done).Fail(ending.error);
  shm::Wake(&half->session->inbox()->wake).Publish();
}

void PairBook::TellEnd(const Match& match, bool to_send, const Ending& ending) {
  control::PairNews news;
  news.set_kind(control::PairNews::ENDED);
  *news.mutable_key() = match.key;
  news.set_error(static_cast<int32_t>(ending.error));
  news.set_rounds(ending.rounds);
  tell_(plan_.node_of_rank[match.rank(to_send)], news);
}

// Takes one side out, and tells the other side, now or when it comes.
void PairBook::Leave(Match& match, bool is_send, const Ending& ending) {
  std::optional<Half>& half = match.half(is_send);
  if (match.gone(is_send)) {
    return;
  }
  match.gone(is_send) = true;
  const bool was_here = half && half->is_here();
  Drop(half);
  const bool is_first = match.ended == ErrorCode::kOk;
  match.ended = is_first ? ending.error : match.ended;
  std::optional<Half>& other = match.half(!is_send);
  if (!is_first || match.gone(!is_send)) {
    return;
  }
  const bool is_between_nodes = !IsLocal(match.rank(!is_send));
  if (was_here) {
    ++left_[match.rank(is_send)];
    if (is_between_nodes) {
      untold_.insert(KeyOf(match.key));
    } else {
      match.left(is_send) = true;
    }
  }
  if (is_between_nodes) {
    TellEnd(match, !is_send, ending);
    match.gone(!is_send) = true;
  } else if (other) {
    EndHalf(match, !is_send, ending);
  }
}

// Fails both sides: the pair does not come about, or cannot go on, and neither side is the cause.
void PairBook::EndBoth(Match& match, ErrorCode error) {
  if (match.ended != ErrorCode::kOk) {
    return;
  }
  match.ended = error;
  for (const bool is_send : {true, false}) {
    std::optional<Half>& half = match.half(is_send);
    if (half && half->is_here()) {
      EndHalf(match, is_send, {error, 0});
    } else if (!IsLocal(match.rank(is_send)) && !match.gone(is_send)) {
      TellEnd(match, is_send, {error, 0});
      match.gone(is_send) = true;
    }
  }
}

void PairBook::EraseIfOver(const control::PairKey& key) {
  const auto found = matches_.find(KeyOf(key));
  if (found != matches_.end() && found->second.send_gone && found->second.receive_gone) {
    Erase(found);
  }
}

void PairBook::Erase(std::map<Key, Match>::iterator found) {
  Match& match = found->second;
  for (const bool is_send : {true, false}) {
    left_[match.rank(is_send)] -= match.left(is_send) ? 1 : 0;
  }
  if (match.foreign) {
    --foreign_[IsLocal(match.rank(true)) ? match.rank(false) : match.rank(true)];
  }
  matches_.erase(found);
}

// Finds the rank of this node in a pair between nodes.
uint32_t PairBook::RankHere(const Key& key) const {
  const uint32_t source = std::get<1>(key);
  return IsLocal(source) ? source : std::get<2>(key);
}

// Forgets the ends of pairs with that rank that were still to be told: no node needs to hear of
// them.
void PairBook::ForgetUntoldOf(uint32_t rank) {
  std::erase_if(untold_, [&](const Key& key) {
    const bool concerns_it = std::get<1>(key) == rank || std::get<2>(key) == rank;
    left_[RankHere(key)] -= concerns_it ? 1 : 0;
    return concerns_it;
  });
}

void PairBook::Withdraw(const Session& session, const attach::WithdrawRequest& request) {
  const control::PairKey key = NewsKey(request.key);
  const bool is_send = request.send != 0;
  const auto found = matches_.find(KeyOf(key));
  if (found == matches_.end()) {
    return;
  }
  Match& match = found->second;
  const std::optional<Half>& half = match.half(is_send);
  if (half && half->session.get() == &session) {
    if (half->in_data_plane) {
      data_plane_.RemovePair({plan_.job_id, session.rank, half->number});
    }
    Leave(match, is_send, {ErrorCode::kInvalidRequest, request.rounds});
  }
  EraseIfOver(key);
}

void PairBook::OnRankEnded(uint32_t rank, ErrorCode error) {
  ended_ranks_[rank] = error;
  ForgetUntoldOf(rank);
  for (auto next = matches_.begin(); next != matches_.end();) {
    Match& match = next->second;
    ++next;
    for (const bool is_send : {true, false}) {
      if (match.rank(is_send) == rank && !match.gone(is_send)) {
        // A rank of another node: its daemon tells all other nodes itself.
        Leave(match, is_send, {error, 0});
      }
    }
    EraseIfOver(control::PairKey(match.key));
  }
}

void PairBook::FailAll(ErrorCode error) {
  for (auto& [key, match] : matches_) {
    if (match.ended == ErrorCode::kOk) {
      match.ended = error;
      for (const bool is_send : {true, false}) {
        if (const std::optional<Half>& half = match.half(is_send); half && half->is_here()) {
          EndHalf(match, is_send, {error, 0});
        }
      }
    }
  }
}

std::vector<PairBook::EndView> PairBook::EndsOf(uint32_t rank) const {
  std::vector<EndView> ends;
  for (const auto& [key, match] : matches_) {
    for (const bool is_send : {true, false}) {
      const std::optional<Half>& half = match.half(is_send);
      if (match.rank(is_send) != rank || !half || !half->is_here() || !half->matched) {
        continue;
      }
      const std::optional<Half>& other = match.half(!is_send);
      EndView& view = ends.emplace_back();
      view.end = half->end;
      view.other = other && other->is_here() ? other->end : RegionPlace();
      view.peer = match.rank(!is_send);
      view.tag = match.key.tag();
      view.is_send = is_send;
      view.mode = match.send ? match.send->mode : shm::SendMode::kStandard;
    }
  }
  return ends;
}

}  // namespace ferry::daemon
