#include "daemon/links/link_book.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "daemon/tls/secrets.h"

namespace ferry::daemon {

using attach::LinkOp;
using control::LinkNews;

const char* LinkStateText(LinkState state) {
  switch (state) {
    case LinkState::kNone:
      return "none";
    case LinkState::kAsked:
      return "asked";
    case LinkState::kOpening:
      return "opening";
    case LinkState::kWaiting:
      return "waiting";
    case LinkState::kUsing:
      return "connecting";
    case LinkState::kUp:
      return "up";
    case LinkState::kEnding:
      return "ending";
    case LinkState::kBroken:
      return "broken";
  }
  return "";
}

LinkBook::LinkBook(const JobPlan& plan, LinkCalls* calls, LinkLimits limits)
    : plan_(plan), calls_(*calls), limits_(limits) {}

// ---- Entries ----

LinkBook::Entry& LinkBook::At(uint32_t rank, uint32_t peer) {
  const auto [found, is_new] = entries_.try_emplace({rank, peer});
  if (is_new) {
    found->second.rank = rank;
    found->second.peer = peer;
    found->second.since_ns = now_ns_;
  }
  return found->second;
}

void LinkBook::Enter(Entry& entry, LinkState state) {
  entry.state = state;
  entry.since_ns = now_ns_;
}

// Whether the pair may have a link, as far as nothing has to be taken for it.
Status LinkBook::Check(const Entry& entry) {
  FERRY_RETURN_IF_ERROR(CheckBars(entry.rank, entry.peer));
  FERRY_RETURN_IF_ERROR(calls_.MayLink(plan_.node_of_rank[entry.peer]));
  if (limits_.per_job != 0 && links_ >= limits_.per_job) {
    return {ErrorCode::kLimitExceeded, "the ranks of this job here have " + std::to_string(links_) +
                                           " links, as many as direct_links_per_job allows"};
  }
  if (LinksOf(entry.rank) >= limits_.per_rank) {
    // If one gives way, the rank asks again later.
    const char* const room = MakeRoom(entry.rank) ? "one goes back" : "none is idle";
    return {ErrorCode::kLimitExceeded,
            "rank " + std::to_string(entry.rank) + " has " + std::to_string(LinksOf(entry.rank)) +
                " links, as many as direct_links_per_rank allows, and " + room};
  }
  return {};
}

// Takes the link back that is idle for longest. False: all are busy.
bool LinkBook::MakeRoom(uint32_t rank) {
  Entry* idlest = nullptr;
  for (auto next = entries_.lower_bound({rank, 0});
       next != entries_.end() && next->first.first == rank; ++next) {
    Entry& entry = next->second;
    if (!entry.counted) {
      continue;
    }
    if (entry.is_returning || entry.state == LinkState::kEnding) {
      return true;
    }
    if (entry.state == LinkState::kUp) {
      LookAtTraffic(entry);
      if (now_ns_ - std::min(now_ns_, entry.active_ns) >= limits_.idle_ns &&
          (idlest == nullptr || entry.active_ns < idlest->active_ns)) {
        idlest = &entry;
      }
    }
  }
  if (idlest == nullptr) {
    return false;
  }
  idlest->why = "it was idle, and its rank needed room for another one";
  Return(*idlest, true);
  return true;
}

void LinkBook::LookAtTraffic(Entry& entry) {
  const uint64_t traffic = calls_.Traffic(entry.rank, entry.peer);
  if (std::exchange(entry.traffic, traffic) != traffic ||
      calls_.HasTransfers(entry.rank, entry.peer)) {
    entry.active_ns = now_ns_;
  }
}

Status LinkBook::Grant(Entry& entry) {
  FERRY_RETURN_IF_ERROR(Check(entry));
  StatusOr<QuotaHold> hold = calls_.TakeQuota();
  FERRY_RETURN_IF_ERROR(hold.status());
  entry.quota = std::move(*hold);
  entry.counted = true;
  ++links_;
  ++links_of_[entry.rank];
  return {};
}

// There is no link any more. What was wanted meanwhile is still known.
void LinkBook::LetGo(Entry& entry) {
  if (std::exchange(entry.counted, false)) {
    --links_;
    --links_of_[entry.rank];
    entry.quota.Release();
  }
  entry.receive_key = entry.send_key = {};
  entry.peer_address.clear();
  entry.round = 0;
  entry.is_returned = entry.is_peer_returned = entry.is_returning = false;
  entry.next.reset();
  entry.is_end_ordered = entry.is_parting = entry.is_parted = entry.is_peer_parted = false;
  Enter(entry, LinkState::kNone);
}

Status LinkBook::CheckBars(uint32_t rank, uint32_t peer) const {
  const auto last = std::find_if(bars_.rbegin(), bars_.rend(),
                                 [&](const Bar& bar) { return bar.Covers(rank, peer); });
  if (last != bars_.rend() && last->is_barred) {
    return {ErrorCode::kPermissionDenied, "the administrator has taken it back"};
  }
  return {};
}

uint64_t LinkBook::LinksOf(uint32_t rank) const {
  const auto found = links_of_.find(rank);
  return found == links_of_.end() ? 0 : found->second;
}

std::vector<LinkView> LinkBook::Views() const {
  std::vector<LinkView> views;
  for (const auto& [name, entry] : entries_) {
    views.push_back({entry.rank, entry.peer, entry.state, entry.link, entry.since_ns,
                     entry.state == LinkState::kUp && !entry.is_returned, entry.is_returning,
                     entry.asked, entry.why});
  }
  return views;
}

// ---- What is said ----

std::string LinkBook::PairText(uint32_t rank, uint32_t peer) {
  return "the link of rank " + std::to_string(rank) + " to rank " + std::to_string(peer);
}

// What a rank says, or another daemon passes on, is for terminals and for protobuf's strings.
std::string LinkBook::Printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

LinkNews LinkBook::NewsOf(const Entry& entry, LinkNews::Kind kind) {
  LinkNews news;
  news.set_kind(kind);
  news.set_rank(entry.rank);
  news.set_peer(entry.peer);
  news.set_link(entry.link);
  return news;
}

void LinkBook::Tell(const Entry& entry, const LinkNews& news) {
  calls_.Tell(plan_.node_of_rank[entry.peer], news);
}

void LinkBook::Tell(const Entry& entry, LinkNews::Kind kind) { Tell(entry, NewsOf(entry, kind)); }

// Where the rank's endpoint is, and what must be in packets to it.
void LinkBook::TellEnd(const Entry& entry, LinkNews::Kind kind, const attach::LinkReply& reply) {
  LinkNews news = NewsOf(entry, kind);
  news.set_address(reply.address, reply.address_bytes);
  news.add_key(entry.receive_key[0]);
  news.add_key(entry.receive_key[1]);
  Tell(entry, news);
}

void LinkBook::TellRefusal(const Entry& entry, uint64_t link, const Status& why) {
  LinkNews news = NewsOf(entry, LinkNews::REFUSED);
  news.set_link(link);
  news.set_error(static_cast<int32_t>(why.code()));
  news.set_text(why.message());
  Tell(entry, news);
}

void LinkBook::TellRound(const Entry& entry, LinkNews::Kind kind) {
  LinkNews news = NewsOf(entry, kind);
  news.set_round(entry.round);
  Tell(entry, news);
}

attach::LinkOrder LinkBook::OrderOf(const Entry& entry, LinkOp op) {
  attach::LinkOrder order{};
  order.op = static_cast<uint32_t>(op);
  order.peer = entry.peer;
  order.link = entry.link;
  return order;
}

void LinkBook::Order(const Entry& entry, LinkOp op, ErrorCode code) {
  attach::LinkOrder order = OrderOf(entry, op);
  order.code = static_cast<int32_t>(code);
  calls_.Order(entry.rank, order);
}

// With all that is known of the peer's end.
void LinkBook::OrderWithPeer(const Entry& entry, LinkOp op) {
  attach::LinkOrder order = OrderOf(entry, op);
  order.address_bytes = static_cast<uint32_t>(entry.peer_address.size());
  std::memcpy(order.address, entry.peer_address.data(), entry.peer_address.size());
  std::copy(entry.send_key.begin(), entry.send_key.end(), order.send_key);
  std::copy(entry.receive_key.begin(), entry.receive_key.end(), order.receive_key);
  calls_.Order(entry.rank, order);
}

// For the first time, or again.
void LinkBook::OrderUse(Entry& entry) {
  entry.wish = Wish::kNone;
  entry.state == LinkState::kUp ? Order(entry, LinkOp::kUse) : OrderWithPeer(entry, LinkOp::kUse);
}

// ---- A link begins ----

void LinkBook::Begin(Entry& entry) {
  ++entry.link;
  DrawKey(entry);
  Enter(entry, LinkState::kOpening);
  Order(entry, LinkOp::kOpen);
}

void LinkBook::DrawKey(Entry& entry) {
  FillRandom({reinterpret_cast<uint8_t*>(entry.receive_key.data()), sizeof(entry.receive_key)});
}

// The rank here is told; there is no link.
void LinkBook::Refuse(Entry& entry, const Status& why) {
  entry.why = why.message();
  LetGo(entry);
  entry.wish = Wish::kNone;
  Order(entry, LinkOp::kRefuse, why.code());
}

// Whatever becomes of the link that there may be. To a rank that waits for nothing it says nothing.
void LinkBook::RefuseWish(Entry& entry, ErrorCode code) {
  if (std::exchange(entry.wish, Wish::kNone) != Wish::kNone) {
    attach::LinkOrder order = OrderOf(entry, LinkOp::kRefuse);
    order.link = 0;
    order.code = static_cast<int32_t>(code);
    calls_.Order(entry.rank, order);
  }
}

// A link is over: sees to the wishes that are left.
void LinkBook::AskAgain(Entry& entry) {
  const bool peer_wants = std::exchange(entry.is_peer_wanting, false);
  switch (entry.wish) {
    case Wish::kNone:
      break;
    case Wish::kWaiting:
      RefuseWish(entry, ErrorCode::kLinkDown);
      break;
    case Wish::kDeferred:
      Seek(entry);
      break;
    case Wish::kTold:
      Enter(entry, LinkState::kAsked);
      break;
  }
  if (peer_wants && entry.state == LinkState::kNone) {
    OnAsked(entry);
  }
}

// ---- It is taken back, and ends ----

// Both ranks shall return their directions. `tell`: the other daemon does not know it.
void LinkBook::Return(Entry& entry, bool tell) {
  entry.is_returning = true;
  if (tell) {
    Tell(entry, LinkNews::RETURN);
  }
  if (entry.state == LinkState::kUp && !entry.is_returned) {
    Order(entry, LinkOp::kReturn);
  }
  TryEnd(entry);
}

uint32_t LinkBook::TakeBack(uint32_t rank, uint32_t peer, bool may_ask_again, uint64_t now_ns) {
  now_ns_ = now_ns;
  const Bar bar{rank, peer, !may_ask_again};
  std::erase_if(bars_, [&](const Bar& old) { return bar.Covers(old.rank, old.peer); });
  if (bar.is_barred || !bars_.empty()) {
    bars_.push_back(bar);
  }
  uint32_t count = 0;
  for (auto& [name, entry] : entries_) {
    if (bar.Covers(entry.rank, entry.peer) && entry.counted && entry.state != LinkState::kEnding &&
        !entry.is_returning) {
      Return(entry, true);
      ++count;
    }
  }
  return count;
}

// Only the leader, once both directions have been returned.
void LinkBook::TryEnd(Entry& entry) {
  if (Leads(entry) && entry.state == LinkState::kUp && entry.is_returned &&
      entry.is_peer_returned) {
    Tell(entry, LinkNews::ENDED);
    End(entry, ErrorCode::kOk);
  }
}

void LinkBook::End(Entry& entry, ErrorCode code) {
  Enter(entry, LinkState::kEnding);
  Order(entry, LinkOp::kEnd, code);
}

// ---- It breaks ----

void LinkBook::Break(Entry& entry, const std::string& text) {
  Enter(entry, LinkState::kBroken);
  entry.why = "its connection broke" + (text.empty() ? text : ": " + text);
  if (const auto next = std::exchange(entry.next, std::nullopt)) {
    TellRefusal(entry, next->link(), {ErrorCode::kLinkDown, "the link before has broken"});
  }
  if (entry.wish != Wish::kNone) {
    entry.wish = Wish::kWaiting;  // until the rank may ask anew
  }
  entry.is_peer_wanting = false;
  entry.is_end_ordered = entry.is_parting = entry.is_parted = entry.is_peer_parted = false;
}

// First the rank's own end has to go: the data plane knows nothing of what that has under way.
void LinkBook::EndBroken(Entry& entry) {
  if (!entry.counted) {
    Part(entry);
  } else if (!std::exchange(entry.is_end_ordered, true)) {
    Order(entry, LinkOp::kEnd, ErrorCode::kLinkDown);
  } else {
    LookAfter(entry);
  }
}

void LinkBook::Part(Entry& entry) {
  if (!std::exchange(entry.is_parting, true)) {
    calls_.Part(entry.rank, entry.peer);
  }
  LookAfter(entry);
}

void LinkBook::LookAfter(Entry& entry) {
  if (entry.is_parting && !entry.is_parted && calls_.IsParted(entry.rank, entry.peer)) {
    entry.is_parted = true;
    Tell(entry, LinkNews::PARTED);
  }
  if (entry.is_parted && entry.is_peer_parted && calls_.AreRejoined(entry.rank, entry.peer)) {
    entry.joined_link = entry.link = std::max(entry.link, entry.parted_link);
    Refuse(entry, {ErrorCode::kLinkDown, entry.why});
  }
}

void LinkBook::OnTick(uint64_t now_ns) {
  now_ns_ = now_ns;
  for (auto& [name, entry] : entries_) {
    if (entry.state == LinkState::kBroken) {
      LookAfter(entry);
    } else if (entry.state == LinkState::kUp && LinksOf(entry.rank) >= limits_.per_rank) {
      LookAtTraffic(entry);
    }
  }
}

// ---- Others end ----

void LinkBook::OnRankEnded(uint32_t rank, ErrorCode error, uint64_t now_ns) {
  now_ns_ = now_ns;
  ended_.insert(rank);
  for (auto next = entries_.begin(); next != entries_.end();) {
    Entry& entry = next->second;
    if (entry.rank != rank && entry.peer != rank) {
      ++next;
      continue;
    }
    if (entry.rank != rank && entry.counted) {
      Order(entry, LinkOp::kEnd, error);
    }
    LetGo(entry);
    next = entries_.erase(next);
  }
}

void LinkBook::OnNodeCut(uint32_t node, uint64_t now_ns) {
  now_ns_ = now_ns;
  for (auto& [name, entry] : entries_) {
    if (plan_.node_of_rank[entry.peer] != node || entry.state == LinkState::kNone) {
      continue;
    }
    entry.is_peer_wanting = false;
    entry.why = "the two nodes were cut off from each other";
    entry.joined_link = entry.link;
    if (entry.counted) {
      Order(entry, LinkOp::kEnd, ErrorCode::kLinkDown);
    }
    RefuseWish(entry, ErrorCode::kLinkDown);
    LetGo(entry);
  }
}

void LinkBook::Clear() {
  entries_.clear();
  links_ = 0;
  links_of_.clear();
}

}  // namespace ferry::daemon
