#include "daemon/control/link_book.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "daemon/control/secrets.h"

namespace ferry::daemon {
namespace {

using attach::LinkEvent;
using attach::LinkOp;
using control::LinkNews;

std::string PairText(uint32_t rank, uint32_t peer) {
  return "the link of rank " + std::to_string(rank) + " to rank " + std::to_string(peer);
}

// What a rank says, or another daemon passes on, is for terminals and for protobuf's strings.
std::string Printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

std::string TextOf(const attach::LinkReply& reply) {
  return Printable({reply.text, strnlen(reply.text, sizeof(reply.text))});
}

bool IsAddress(size_t bytes) { return bytes != 0 && bytes <= attach::kLinkAddressBytes; }

}  // namespace

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
  if (entry.is_barred) {
    return {ErrorCode::kPermissionDenied, "the administrator has taken it back"};
  }
  FERRY_RETURN_IF_ERROR(calls_.MayLink(plan_.node_of_rank[entry.peer]));
  if (limits_.per_job != 0 && links_ >= limits_.per_job) {
    return {ErrorCode::kLimitExceeded, "the ranks of this job here have " + std::to_string(links_) +
                                           " links, as many as direct_links_per_job allows"};
  }
  if (LinksOf(entry.rank) >= limits_.per_rank) {
    // The link that is idle for longest gives way; the rank asks again later.
    if (!std::exchange(wants_room_[entry.rank], true)) {
      attach::LinkOrder order{};
      order.op = static_cast<uint32_t>(LinkOp::kReturn);
      order.peer = attach::kAnyPeer;
      calls_.Order(entry.rank, order);
    }
    return {ErrorCode::kLimitExceeded, "rank " + std::to_string(entry.rank) + " has " +
                                           std::to_string(LinksOf(entry.rank)) +
                                           " links, as many as direct_links_per_rank allows"};
  }
  return {};
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

void LinkBook::AskAgain(Entry& entry) {
  const bool peer_wants = std::exchange(entry.is_peer_wanting, false);
  if (std::exchange(entry.is_wanted, false)) {
    Seek(entry);
  } else if (peer_wants) {
    OnAsked(entry);
  }
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

// ---- A link begins ----

void LinkBook::Ask(uint32_t rank, uint32_t peer, uint64_t now_ns) {
  now_ns_ = now_ns;
  if (rank >= plan_.size() || peer >= plan_.size() || !IsLocal(rank) || IsLocal(peer)) {
    return;  // the data plane has checked it: no rank can say so
  }
  if (ended_.contains(rank) || ended_.contains(peer)) {
    return;
  }
  Entry& entry = At(rank, peer);
  ++entry.asked;
  switch (entry.state) {
    case LinkState::kNone:
      return Seek(entry);
    case LinkState::kUp:
      if (entry.is_returned && !entry.is_returning) {
        return UseAgain(entry);
      }
      [[fallthrough]];  // it has been returned, or soon will be
    case LinkState::kEnding:
      entry.is_wanted = true;
      return;
    case LinkState::kAsked:
    case LinkState::kOpening:
    case LinkState::kWaiting:
    case LinkState::kUsing:
    case LinkState::kBroken:
      return;
  }
}

// The rank here wants a link, and there is none.
void LinkBook::Seek(Entry& entry) {
  const Status status = Leads(entry) ? Grant(entry) : Check(entry);
  if (!status.ok()) {
    return Refuse(entry, status);
  }
  if (Leads(entry)) {
    return Begin(entry);
  }
  Enter(entry, LinkState::kAsked);
  Tell(entry, LinkNews::ASKED);
}

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
  Order(entry, LinkOp::kRefuse, why.code());
}

// The other rank wants it, and this daemon leads.
void LinkBook::OnAsked(Entry& entry) {
  switch (entry.state) {
    case LinkState::kNone:
      if (const Status status = Grant(entry); !status.ok()) {
        entry.why = status.message();
        return TellRefusal(entry, 0, status);
      }
      return Begin(entry);
    case LinkState::kUp:
    case LinkState::kEnding:
      entry.is_peer_wanting = true;
      return AllowPeer(entry);
    case LinkState::kBroken:
      return TellRefusal(entry, 0, {ErrorCode::kLinkDown, "the link before has broken"});
    case LinkState::kAsked:  // not of a leader
    case LinkState::kOpening:
    case LinkState::kWaiting:
    case LinkState::kUsing:
      return;
  }
}

Status LinkBook::OnWanted(Entry& entry, const LinkNews& news) {
  if (!IsAddress(news.address().size()) || news.key_size() != 2) {
    return {ErrorCode::kInvalidArgument,
            PairText(entry.peer, entry.rank) + " has no address, or no key"};
  }
  if (news.link() <= entry.link) {
    return {};  // said again
  }
  const bool has_asked = entry.state == LinkState::kAsked;
  if (entry.state == LinkState::kBroken) {
    TellRefusal(entry, news.link(), {ErrorCode::kLinkDown, "the link before has broken"});
    return {};
  }
  if (!has_asked && entry.state != LinkState::kNone) {
    entry.next = news;  // until the rank here has let go of its end
    if (entry.state != LinkState::kEnding) {
      End(entry, ErrorCode::kLinkDown);  // the leader knows nothing of it any more
    }
    return {};
  }
  LetGo(entry);
  entry.link = news.link();
  if (const Status status = Grant(entry); !status.ok()) {
    entry.why = status.message();
    TellRefusal(entry, entry.link, status);
    if (has_asked) {
      Order(entry, LinkOp::kRefuse, status.code());
    }
    return {};
  }
  entry.peer_address = news.address();
  entry.send_key = {news.key(0), news.key(1)};
  DrawKey(entry);
  Enter(entry, LinkState::kOpening);
  OrderWithPeer(entry, LinkOp::kOpen);
  return {};
}

Status LinkBook::OnOpened(Entry& entry, const attach::LinkReply& reply) {
  if (!IsAddress(reply.address_bytes)) {
    return {ErrorCode::kCorrupt,
            "an endpoint has an address of " + std::to_string(reply.address_bytes) + " bytes"};
  }
  if (entry.state == LinkState::kOpening) {
    Enter(entry, LinkState::kWaiting);
    TellEnd(entry, Leads(entry) ? LinkNews::WANTED : LinkNews::OPENED, reply);
  }
  return {};
}

Status LinkBook::OnPeerOpened(Entry& entry, const LinkNews& news) {
  if (!IsAddress(news.address().size()) || news.key_size() != 2) {
    return {ErrorCode::kInvalidArgument,
            PairText(entry.peer, entry.rank) + " has no address, or no key"};
  }
  if (entry.state == LinkState::kUp && entry.round == 1) {
    TellRound(entry, LinkNews::USED);  // perhaps that got lost
  }
  if (entry.state == LinkState::kWaiting) {
    entry.peer_address = news.address();
    entry.send_key = {news.key(0), news.key(1)};
    Enter(entry, LinkState::kUsing);
    OrderWithPeer(entry, LinkOp::kUse);
  }
  return {};
}

void LinkBook::OnUsed(Entry& entry) {
  if (entry.state != LinkState::kUsing) {
    return;  // it is used again
  }
  Enter(entry, LinkState::kUp);
  entry.why.clear();
  if (Leads(entry)) {
    entry.round = 1;
    TellRound(entry, LinkNews::USED);
  }
  if (entry.is_returning) {
    Return(entry, Leads(entry));  // the other one has not known the link until now
  }
}

// The rank here cannot have the link, or not use it.
void LinkBook::OnCannot(Entry& entry, const Status& why) {
  entry.why = why.message();
  if (entry.state == LinkState::kOpening) {
    // A leader tells it to a rank that has asked, the other one answers what was wanted.
    TellRefusal(entry, Leads(entry) ? 0 : entry.link, why);
    LetGo(entry);
  } else if (entry.state == LinkState::kUsing && Leads(entry)) {
    Tell(entry, LinkNews::ENDED);
    End(entry, why.code());
  } else if (entry.state == LinkState::kUsing) {
    TellRefusal(entry, entry.link, why);  // the leader has both directions returned, and ends it
    Enter(entry, LinkState::kUp);
    entry.is_returned = true;
  } else if (entry.state == LinkState::kUp && !entry.is_returned) {
    entry.is_returned = true;  // it was to be used again, and its connection is gone
    if (!Leads(entry)) {
      TellRound(entry, LinkNews::RETURNED);
    }
    Return(entry, true);
  }
}

// The other daemon refuses: what was asked for (`link` is 0), or a link of this number.
void LinkBook::OnPeerRefused(Entry& entry, uint64_t link, const Status& why) {
  if (entry.state == LinkState::kAsked && link == 0) {
    return Refuse(entry, why);
  }
  if (!Leads(entry) || link != entry.link) {
    return;
  }
  if (entry.state == LinkState::kWaiting) {
    return Refuse(entry, why);
  }
  if (entry.state == LinkState::kUp) {
    entry.why = why.message();
    entry.is_peer_returned = true;
    Return(entry, true);
  }
}

// ---- Use and return ----

// The rank here has returned its direction, and wants to use the link again.
void LinkBook::UseAgain(Entry& entry) {
  if (!Leads(entry)) {
    return Tell(entry, LinkNews::ASKED);  // the leader may be about to end it
  }
  entry.is_returned = false;
  Order(entry, LinkOp::kUse);
}

// The leader lets the other rank use the link again, if that wants to and has returned it.
void LinkBook::AllowPeer(Entry& entry) {
  if (entry.state == LinkState::kUp && entry.is_peer_returned && !entry.is_returning &&
      entry.is_peer_wanting) {
    entry.is_peer_wanting = entry.is_peer_returned = false;
    ++entry.round;
    TellRound(entry, LinkNews::USED);
  }
}

void LinkBook::OnPeerUsed(Entry& entry, uint32_t round) {
  if (round <= entry.round) {
    return;  // said again
  }
  if (entry.state == LinkState::kWaiting) {
    entry.round = round;
    Enter(entry, LinkState::kUsing);
    return OrderWithPeer(entry, LinkOp::kUse);
  }
  if (entry.state != LinkState::kUp || !entry.is_returned) {
    return;
  }
  entry.round = round;
  if (entry.is_returning) {
    return TellRound(entry, LinkNews::RETURNED);
  }
  entry.is_returned = false;
  Order(entry, LinkOp::kUse);
}

void LinkBook::OnReturned(Entry& entry) {
  if (entry.state != LinkState::kUp || entry.is_returned) {
    return;
  }
  entry.is_returned = true;
  if (std::exchange(wants_room_[entry.rank], false) && !entry.is_returning) {
    Return(entry, true);
  }
  const bool is_wanted = !entry.is_returning && std::exchange(entry.is_wanted, false);
  if (!Leads(entry)) {
    TellRound(entry, LinkNews::RETURNED);
  }
  if (is_wanted) {
    return UseAgain(entry);
  }
  TryEnd(entry);
}

void LinkBook::OnPeerReturned(Entry& entry, uint32_t round) {
  if (entry.state == LinkState::kUp && round == entry.round) {
    entry.is_peer_returned = true;
    AllowPeer(entry);
    TryEnd(entry);
  }
}

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
  uint32_t count = 0;
  for (auto& [name, entry] : entries_) {
    if ((rank == attach::kAnyPeer || rank == entry.rank) &&
        (peer == attach::kAnyPeer || peer == entry.peer)) {
      entry.is_barred = !may_ask_again;
      if (entry.counted && entry.state != LinkState::kEnding && !entry.is_returning) {
        Return(entry, true);
        ++count;
      }
    }
  }
  return count;
}

// ---- The end ----

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

void LinkBook::OnEnded(Entry& entry, bool was_used) {
  if (entry.state == LinkState::kBroken && entry.is_end_ordered) {
    return Part(entry);
  }
  if (entry.state != LinkState::kEnding) {
    return;
  }
  if (was_used) {  // the other one is told by PARTED
    Break(entry);
    return Part(entry);
  }
  const std::optional<LinkNews> next = std::exchange(entry.next, std::nullopt);
  LetGo(entry);
  if (!next) {
    return AskAgain(entry);
  }
  if (std::exchange(entry.is_wanted, false)) {
    Enter(entry, LinkState::kAsked);
  }
  (void)OnWanted(entry, *next);  // good news: they have been looked at
}

void LinkBook::OnPeerEnded(Entry& entry, uint64_t link) {
  if (link > entry.link && !Leads(entry)) {
    entry.next.reset();
    if (entry.state == LinkState::kNone || entry.state == LinkState::kAsked) {
      entry.link = link;  // what it wanted comes too late
    }
    return;
  }
  if (link != entry.link) {
    return;
  }
  switch (entry.state) {
    case LinkState::kNone:
    case LinkState::kAsked:
    case LinkState::kEnding:
      return;
    case LinkState::kOpening:
    case LinkState::kWaiting:
    case LinkState::kUsing:
    case LinkState::kUp:
    case LinkState::kBroken:
      // If this daemon leads, the other one knows nothing of the link: then what was under way is
      // lost.
      return End(entry, Leads(entry) ? ErrorCode::kLinkDown : ErrorCode::kOk);
  }
}

// ---- A link breaks ----

void LinkBook::Break(Entry& entry, const std::string& text) {
  Enter(entry, LinkState::kBroken);
  entry.why = "its connection broke" + (text.empty() ? text : ": " + text);
  if (const auto next = std::exchange(entry.next, std::nullopt)) {
    TellRefusal(entry, next->link(), {ErrorCode::kLinkDown, "the link before has broken"});
  }
  entry.is_wanted = entry.is_peer_wanting = false;  // the ranks ask anew
  entry.is_end_ordered = entry.is_parting = entry.is_parted = entry.is_peer_parted = false;
}

// Nothing fails here yet: if the other rank is dead, that is what this one is to hear.
void LinkBook::OnLost(Entry& entry, const std::string& text) {
  const bool is_connected = entry.state == LinkState::kUsing || entry.state == LinkState::kUp ||
                            (entry.state == LinkState::kWaiting && !Leads(entry));
  if (is_connected) {
    Break(entry, text);
    Tell(entry, LinkNews::BROKEN);
  }
}

// The other rank has lost it. If the link is ending, nothing takes it any more.
void LinkBook::OnPeerBroken(Entry& entry) {
  if (entry.state == LinkState::kEnding) {
    return;
  }
  if (entry.state != LinkState::kBroken) {
    Break(entry);
  }
  EndBroken(entry);
}

void LinkBook::OnPeerParted(Entry& entry, uint64_t link) {
  if (link <= entry.joined_link) {
    return;  // said again
  }
  entry.parted_link = std::max(entry.parted_link, link);
  if (entry.state != LinkState::kBroken) {
    Break(entry);
  }
  entry.is_peer_parted = true;
  EndBroken(entry);
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
  if (entry.is_parted && entry.is_peer_parted && calls_.Rejoin(entry.rank, entry.peer)) {
    entry.joined_link = entry.link = std::max(entry.link, entry.parted_link);
    Order(entry, LinkOp::kRefuse, ErrorCode::kLinkDown);
    LetGo(entry);
  }
}

void LinkBook::OnTick(uint64_t now_ns) {
  now_ns_ = now_ns;
  for (auto& [name, entry] : entries_) {
    if (entry.state == LinkState::kBroken) {
      LookAfter(entry);
    }
  }
}

// ---- From outside ----

Status LinkBook::OnReply(uint32_t rank, const attach::LinkReply& reply, uint64_t now_ns) {
  now_ns_ = now_ns;
  if (reply.peer >= plan_.size() || IsLocal(reply.peer)) {
    return {ErrorCode::kCorrupt,
            PairText(rank, reply.peer) + ": the other one is no rank of another node"};
  }
  const auto found = entries_.find({rank, reply.peer});
  if (found == entries_.end() || found->second.link != reply.link) {
    return {};  // of a link that is over
  }
  Entry& entry = found->second;
  switch (static_cast<LinkEvent>(reply.event)) {
    case LinkEvent::kOpened:
      return OnOpened(entry, reply);
    case LinkEvent::kRefused:
      OnCannot(entry, {static_cast<ErrorCode>(reply.code), TextOf(reply)});
      return {};
    case LinkEvent::kUsed:
      OnUsed(entry);
      return {};
    case LinkEvent::kReturned:
      OnReturned(entry);
      return {};
    case LinkEvent::kEnded:
      OnEnded(entry, (reply.flags & attach::kLinkWasUsed) != 0);
      return {};
    case LinkEvent::kLost:
      OnLost(entry, TextOf(reply));
      return {};
  }
  return {ErrorCode::kCorrupt,
          PairText(rank, reply.peer) + ": there is no event " + std::to_string(reply.event)};
}

Status LinkBook::OnNews(uint32_t node, const LinkNews& news, uint64_t now_ns) {
  now_ns_ = now_ns;
  const uint32_t peer = news.rank();
  const uint32_t rank = news.peer();
  if (peer >= plan_.size() || rank >= plan_.size() || plan_.node_of_rank[peer] != node ||
      !IsLocal(rank)) {
    return {ErrorCode::kInvalidArgument,
            PairText(peer, rank) + " is none of node " + std::to_string(node) + " with this one"};
  }
  if (ended_.contains(rank) || ended_.contains(peer)) {
    return {};  // the other daemon hears, or has heard, of that end
  }
  Entry& entry = At(rank, peer);
  const bool is_for_leader = news.kind() == LinkNews::ASKED || news.kind() == LinkNews::OPENED ||
                             news.kind() == LinkNews::RETURNED;
  const bool is_for_other = news.kind() == LinkNews::WANTED || news.kind() == LinkNews::USED;
  if ((is_for_leader && !Leads(entry)) || (is_for_other && Leads(entry))) {
    return {ErrorCode::kInvalidArgument,
            PairText(peer, rank) + ": those news are for the other one of the two"};
  }
  switch (news.kind()) {
    case LinkNews::ASKED:
      OnAsked(entry);
      return {};
    case LinkNews::WANTED:
      return OnWanted(entry, news);
    case LinkNews::REFUSED:
      OnPeerRefused(entry, news.link(),
                    {static_cast<ErrorCode>(news.error()), Printable(news.text())});
      return {};
    case LinkNews::ENDED:
      OnPeerEnded(entry, news.link());
      return {};
    case LinkNews::PARTED:
      OnPeerParted(entry, news.link());
      return {};
    default:
      break;
  }
  // The others are of a link that both know. Who has not heard that it is over is told.
  if (news.link() != entry.link || entry.state == LinkState::kNone) {
    if (news.kind() == LinkNews::OPENED || news.kind() == LinkNews::USED ||
        news.kind() == LinkNews::BROKEN) {
      LinkNews answer = NewsOf(entry, LinkNews::ENDED);
      answer.set_link(news.link());
      Tell(entry, answer);
    }
    return {};
  }
  switch (news.kind()) {
    case LinkNews::OPENED:
      return OnPeerOpened(entry, news);
    case LinkNews::USED:
      OnPeerUsed(entry, news.round());
      return {};
    case LinkNews::RETURN:
      if (!entry.is_returning) {
        Return(entry, false);
      }
      return {};
    case LinkNews::RETURNED:
      OnPeerReturned(entry, news.round());
      return {};
    case LinkNews::BROKEN:
      OnPeerBroken(entry);
      return {};
    default:
      return {ErrorCode::kInvalidArgument, "unknown news of " + PairText(peer, rank)};
  }
}

void LinkBook::OnRefused(const LinkNews& news, const Status& status, uint64_t now_ns) {
  now_ns_ = now_ns;
  const auto found = entries_.find({news.rank(), news.peer()});
  if (found == entries_.end()) {
    return;
  }
  Entry& entry = found->second;
  if (news.kind() == LinkNews::ASKED && entry.state == LinkState::kAsked) {
    Refuse(entry, status);
  } else if (news.link() == entry.link && entry.state == LinkState::kWaiting &&
             (news.kind() == LinkNews::WANTED || news.kind() == LinkNews::OPENED)) {
    entry.why = status.message();
    TellRefusal(entry, Leads(entry) ? 0 : entry.link, status);
    End(entry, status.code());
  }
}

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

void LinkBook::Clear() {
  entries_.clear();
  links_ = 0;
  links_of_.clear();
}

void LinkBook::OnNodeCut(uint32_t node, uint64_t now_ns) {
  now_ns_ = now_ns;
  for (auto& [name, entry] : entries_) {
    if (plan_.node_of_rank[entry.peer] != node || entry.state == LinkState::kNone) {
      continue;
    }
    entry.is_wanted = entry.is_peer_wanting = false;
    entry.why = "the two nodes were cut off from each other";
    entry.joined_link = entry.link;
    Order(entry, entry.counted ? LinkOp::kEnd : LinkOp::kRefuse, ErrorCode::kLinkDown);
    LetGo(entry);
  }
}

}  // namespace ferry::daemon
