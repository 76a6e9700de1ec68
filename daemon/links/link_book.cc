#include "daemon/links/link_book.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

namespace ferry::daemon {

using attach::LinkEvent;
using attach::LinkOp;
using control::LinkNews;

namespace {

bool IsOneOf(LinkNews::Kind kind, std::initializer_list<LinkNews::Kind> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

std::string TextOf(const attach::LinkReply& reply) {
  return {reply.text, strnlen(reply.text, sizeof(reply.text))};
}

}  // namespace

LinkBook::LinkBook(const JobPlan& plan, LinkCalls* calls, LinkLimits limits)
    : plan_(plan), messages_(plan, *calls), ends_(plan, *calls, messages_, limits) {}

// ---- Ranks here: a wish ----

void LinkBook::Ask(uint32_t rank, uint32_t peer, uint64_t now_ns) {
  ends_.set_now(now_ns);
  if (rank >= plan_.size() || peer >= plan_.size() || !IsLocal(rank) || IsLocal(peer)) {
    return;  // the data plane has checked it: no rank gets here
  }
  if (ended_.contains(rank) || ended_.contains(peer)) {
    return;
  }
  LinkEnd& end = ends_.At(rank, peer);
  ++end.asked;
  if (end.wish != LinkWish::kNone) {
    return;  // no correct rank asks twice
  }
  switch (end.state) {
    case LinkState::kNone:
      return ends_.Seek(end);
    case LinkState::kUp:
      if (end.is_returned && !end.is_returning) {
        return UseAgain(end);
      }
      [[fallthrough]];       // it has been returned, or soon will be
    case LinkState::kUsing:  // wishes may overtake answers
    case LinkState::kEnding:
      end.wish = LinkWish::kDeferred;
      return;
    case LinkState::kOpening:
    case LinkState::kWaiting:
    case LinkState::kBroken:
      end.wish = LinkWish::kWaiting;
      return;
    case LinkState::kAsked:
      return;
  }
}

// Lets the rank use the link again, whose direction it has returned.
void LinkBook::UseAgain(LinkEnd& end) {
  if (!end.Leads()) {
    end.wish = LinkWish::kTold;
    return messages_.Tell(end, LinkNews::ASKED);  // the leader may be about to end it
  }
  end.is_returned = false;
  ends_.OrderUse(end);
}

// ---- Ranks here: answers to orders, and what is said unasked ----

Status LinkBook::OnReply(uint32_t rank, const attach::LinkReply& reply, uint64_t now_ns) {
  ends_.set_now(now_ns);
  if (reply.peer >= plan_.size() || IsLocal(reply.peer)) {
    return {ErrorCode::kCorrupt,
            LinkText(rank, reply.peer) + ": the other one is no rank of another node"};
  }
  LinkEnd* const found = ends_.Find(rank, reply.peer);
  if (found == nullptr || found->link != reply.link) {
    return {};  // the link is over
  }
  LinkEnd& end = *found;
  switch (static_cast<LinkEvent>(reply.event)) {
    case LinkEvent::kOpened:
      return OnOpened(end, reply);
    case LinkEvent::kRefused:
      OnCannot(end, {static_cast<ErrorCode>(reply.code), Printable(TextOf(reply))});
      return {};
    case LinkEvent::kUsed:
      OnUsed(end);
      return {};
    case LinkEvent::kReturned:
      OnReturned(end);
      return {};
    case LinkEvent::kEnded:
      OnEnded(end, (reply.flags & attach::kLinkWasUsed) != 0);
      return {};
    case LinkEvent::kLost:
      OnLinkDown(end, Printable(TextOf(reply)));
      return {};
  }
  return {ErrorCode::kCorrupt,
          LinkText(rank, reply.peer) + ": there is no event " + std::to_string(reply.event)};
}

Status LinkBook::OnOpened(LinkEnd& end, const attach::LinkReply& reply) {
  if (reply.address_bytes == 0 || reply.address_bytes > attach::kLinkAddressBytes) {
    return {ErrorCode::kCorrupt,
            "an endpoint has an address of " + std::to_string(reply.address_bytes) + " bytes"};
  }
  if (end.state == LinkState::kOpening) {
    ends_.Enter(end, LinkState::kWaiting);
    messages_.TellEnd(end, end.Leads() ? LinkNews::WANTED : LinkNews::OPENED, reply);
  }
  return {};
}

void LinkBook::OnUsed(LinkEnd& end) {
  if (end.state != LinkState::kUsing) {  // the link is used again
    // The rank may have got both orders at once, when it had nothing to give back yet.
    if (end.state == LinkState::kUp && end.is_returning && !end.is_returned) {
      messages_.Order(end, LinkOp::kReturn);
    }
    return;
  }
  ends_.Enter(end, LinkState::kUp);
  end.why.clear();
  end.active_ns = ends_.now_ns();
  if (end.Leads()) {
    end.round = 1;
    messages_.TellRound(end, LinkNews::USED);
  }
  if (end.is_returning) {
    ends_.Return(end, end.Leads());  // the other daemon learns of the link only now
  }
}

// The rank here cannot open its end, or cannot use the link.
void LinkBook::OnCannot(LinkEnd& end, const Status& why) {
  end.why = why.message();
  if (end.state == LinkState::kOpening) {
    // A leader refuses the other rank's wish; the other daemon refuses the link that was wanted.
    messages_.TellRefusal(end, end.Leads() ? 0 : end.link, why);
    ends_.RefuseWish(end, why.code());  // the rank may have asked since it answered
    ends_.LetGo(end);
  } else if (end.state == LinkState::kUsing && end.Leads()) {
    messages_.Tell(end, LinkNews::ENDED);
    ends_.End(end, why.code());
  } else if (end.state == LinkState::kUsing) {
    // The leader has both directions returned, and ends it.
    messages_.TellRefusal(end, end.link, why);
    ends_.Enter(end, LinkState::kUp);
    end.is_returned = true;
  } else if (end.state == LinkState::kUp) {
    // The link was to be used again and its connection is gone, or the rank gives it up.
    if (!std::exchange(end.is_returned, true) && !end.Leads()) {
      messages_.TellRound(end, LinkNews::RETURNED);
    }
    end.is_returning ? ends_.TryEnd(end) : ends_.Return(end, true);
  }
}

void LinkBook::OnReturned(LinkEnd& end) {
  if (end.state != LinkState::kUp || end.is_returned) {
    return;
  }
  end.is_returned = true;
  if (!end.Leads()) {
    messages_.TellRound(end, LinkNews::RETURNED);
  }
  if (end.wish == LinkWish::kDeferred && !end.is_returning) {
    return UseAgain(end);
  }
  ends_.TryEnd(end);
}

void LinkBook::OnEnded(LinkEnd& end, bool was_used) {
  if (end.state == LinkState::kBroken && end.is_end_ordered) {
    return ends_.Part(end);
  }
  if (end.state != LinkState::kEnding) {
    return;
  }
  if (was_used) {  // PARTED tells the other daemon
    ends_.Break(end);
    return ends_.Part(end);
  }
  const std::optional<LinkNews> next = std::exchange(end.next, std::nullopt);
  ends_.LetGo(end);
  next ? ends_.OnWanted(end, *next) : ends_.AskAgain(end);
}

// Fails nothing yet: if the other rank is dead, this rank is to hear of the death.
void LinkBook::OnLinkDown(LinkEnd& end, const std::string& text) {
  const bool is_connected = end.state == LinkState::kUsing || end.state == LinkState::kUp ||
                            (end.state == LinkState::kWaiting && !end.Leads());
  if (is_connected) {
    ends_.Break(end, text);
    messages_.Tell(end, LinkNews::BROKEN);
  }
}

// ---- Daemons of other nodes ----

// Accepts news that can be acted on, and old ones.
Status LinkBook::CheckNews(uint32_t node, const LinkNews& news) const {
  const uint32_t peer = news.rank();
  const uint32_t rank = news.peer();
  const LinkNews::Kind kind = news.kind();
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidArgument, LinkText(peer, rank) + what);
  };
  if (peer >= plan_.size() || rank >= plan_.size() || plan_.node_of_rank[peer] != node ||
      !IsLocal(rank)) {
    return bad(" is none of node " + std::to_string(node) + " with this one");
  }
  if (kind == LinkNews::KIND_UNSPECIFIED || !LinkNews::Kind_IsValid(kind)) {
    return bad(": there are no news of kind " + std::to_string(kind));
  }
  const bool is_for_leader = IsOneOf(kind, {LinkNews::ASKED, LinkNews::OPENED, LinkNews::RETURNED});
  const bool is_for_other = IsOneOf(kind, {LinkNews::WANTED, LinkNews::USED});
  if (rank < peer ? is_for_other : is_for_leader) {
    return bad(": those news are for the other one of the two");
  }
  const size_t bytes = news.address().size();
  if (IsOneOf(kind, {LinkNews::WANTED, LinkNews::OPENED}) &&
      (bytes == 0 || bytes > attach::kLinkAddressBytes || news.key_size() != 2)) {
    return bad(" has no address, or no key");
  }
  return {};
}

Status LinkBook::OnNews(uint32_t node, const LinkNews& news, uint64_t now_ns) {
  ends_.set_now(now_ns);
  FERRY_RETURN_IF_ERROR(CheckNews(node, news));
  const uint32_t peer = news.rank();
  const uint32_t rank = news.peer();
  if (ended_.contains(rank) || ended_.contains(peer)) {
    return {};  // the other daemon is told of that end, or knows it
  }
  LinkEnd& end = ends_.At(rank, peer);
  // A daemon that still speaks of a link that is over is told so.
  const bool is_known = news.link() == end.link && end.state != LinkState::kNone;
  const auto tell_end = [&] {
    LinkNews answer = LinkMessages::NewsOf(end, LinkNews::ENDED);
    answer.set_link(news.link());
    messages_.Tell(end, answer);
  };
  switch (news.kind()) {
    case LinkNews::ASKED:
      ends_.OnAsked(end);
      break;
    case LinkNews::WANTED:
      ends_.OnWanted(end, news);
      break;
    case LinkNews::REFUSED:
      OnPeerRefused(end, news.link(),
                    {static_cast<ErrorCode>(news.error()), Printable(news.text())});
      break;
    case LinkNews::ENDED:
      OnPeerEnded(end, news.link());
      break;
    case LinkNews::PARTED:
      OnPeerParted(end, news.link());
      break;
    case LinkNews::OPENED:
      is_known ? OnPeerOpened(end, news) : tell_end();
      break;
    case LinkNews::USED:
      is_known ? OnPeerUsed(end, news.round()) : tell_end();
      break;
    case LinkNews::BROKEN:
      is_known ? OnPeerBroken(end) : tell_end();
      break;
    case LinkNews::RETURN:
      if (is_known && !end.is_returning) {
        ends_.Return(end, false);
      }
      break;
    case LinkNews::RETURNED:
      if (is_known) {
        OnPeerReturned(end, news.round());
      }
      break;
    default:
      break;  // CheckNews lets none pass
  }
  return {};
}

void LinkBook::OnRefused(const LinkNews& news, const Status& refusal, uint64_t now_ns) {
  ends_.set_now(now_ns);
  const Status status(refusal.code(), Printable(refusal.message()));
  LinkEnd* const found = ends_.Find(news.rank(), news.peer());
  if (found == nullptr) {
    return;
  }
  LinkEnd& end = *found;
  if (news.kind() == LinkNews::ASKED) {
    OnPeerRefused(end, 0, status);
  } else if (news.link() == end.link && end.state == LinkState::kWaiting &&
             (news.kind() == LinkNews::WANTED || news.kind() == LinkNews::OPENED)) {
    end.why = status.message();
    messages_.TellRefusal(end, end.Leads() ? 0 : end.link, status);
    ends_.End(end, status.code());
  }
}

void LinkBook::OnPeerOpened(LinkEnd& end, const LinkNews& news) {
  if (end.state == LinkState::kUp && end.round == 1) {
    messages_.TellRound(end, LinkNews::USED);  // the first one may have got lost
  }
  if (end.state == LinkState::kWaiting) {
    end.peer_address = news.address();
    end.send_key = {news.key(0), news.key(1)};
    ends_.Enter(end, LinkState::kUsing);
    ends_.OrderUse(end);
  }
}

// The other daemon refuses the rank's wish (`link` is 0), or the link of that number.
void LinkBook::OnPeerRefused(LinkEnd& end, uint64_t link, const Status& why) {
  if (link == 0 && end.wish == LinkWish::kTold) {
    if (end.state == LinkState::kAsked) {
      ends_.Enter(end, LinkState::kNone);
    }
    end.why = why.message();
    return ends_.RefuseWish(end, why.code());
  }
  if (!end.Leads() || link != end.link) {
    return;
  }
  if (end.state == LinkState::kWaiting) {
    return ends_.Refuse(end, why);
  }
  if (end.state == LinkState::kUp) {
    end.why = why.message();
    end.is_peer_returned = true;
    ends_.Return(end, true);
  }
}

void LinkBook::OnPeerUsed(LinkEnd& end, uint32_t round) {
  if (round <= end.round) {
    return;  // a repetition
  }
  if (end.state == LinkState::kWaiting) {
    end.round = round;
    ends_.Enter(end, LinkState::kUsing);
    return ends_.OrderUse(end);
  }
  if (end.state != LinkState::kUp || !end.is_returned) {
    return;
  }
  end.round = round;
  if (end.is_returning) {
    if (end.wish == LinkWish::kTold) {
      end.wish = LinkWish::kDeferred;  // the leader has answered
    }
    return messages_.TellRound(end, LinkNews::RETURNED);
  }
  end.is_returned = false;
  ends_.OrderUse(end);
}

void LinkBook::OnPeerReturned(LinkEnd& end, uint32_t round) {
  if (end.state == LinkState::kUp && round == end.round) {
    end.is_peer_returned = true;
    ends_.AllowPeer(end);
    ends_.TryEnd(end);
  }
}

void LinkBook::OnPeerEnded(LinkEnd& end, uint64_t link) {
  if (link > end.link && !end.Leads()) {
    end.next.reset();
    if (end.state == LinkState::kNone || end.state == LinkState::kAsked) {
      end.link = link;  // its WANTED comes too late
    }
    return;
  }
  if (link != end.link) {
    return;
  }
  switch (end.state) {
    case LinkState::kNone:
    case LinkState::kAsked:
    case LinkState::kEnding:
      return;
    case LinkState::kOpening:
    case LinkState::kWaiting:
    case LinkState::kUsing:
    case LinkState::kUp:
    case LinkState::kBroken:
      // If this daemon leads, the other one does not know the link any more: what was under way is
      // lost.
      return ends_.End(end, end.Leads() ? ErrorCode::kLinkDown : ErrorCode::kOk);
  }
}

// The other rank has lost the link. A link that is ending carries nothing any more.
void LinkBook::OnPeerBroken(LinkEnd& end) {
  if (end.state == LinkState::kEnding) {
    return;
  }
  if (end.state != LinkState::kBroken) {
    ends_.Break(end);
  }
  ends_.EndBroken(end);
}

void LinkBook::OnPeerParted(LinkEnd& end, uint64_t link) {
  if (link <= end.joined_link) {
    return;  // a repetition
  }
  end.parted_link = std::max(end.parted_link, link);
  if (end.state != LinkState::kBroken) {
    ends_.Break(end);
  }
  end.is_peer_parted = true;
  ends_.EndBroken(end);
}

// ---- The administrator, the clock, and the ends of others ----

uint32_t LinkBook::TakeBack(uint32_t rank, uint32_t peer, bool may_ask_again, uint64_t now_ns) {
  ends_.set_now(now_ns);
  const LinkBar bar{rank, peer, !may_ask_again};
  ends_.SetBar(bar);
  uint32_t count = 0;
  for (auto& [name, end] : ends_.all()) {
    if (bar.Covers(end.rank, end.peer) && end.counted && end.state != LinkState::kEnding &&
        !end.is_returning) {
      ends_.Return(end, true);
      ++count;
    }
  }
  return count;
}

std::vector<LinkView> LinkBook::Views() const {
  std::vector<LinkView> views;
  for (const auto& [name, end] : ends_.all()) {
    views.push_back({end.rank, end.peer, end.state, end.link, end.since_ns,
                     end.state == LinkState::kUp && !end.is_returned, end.is_returning, end.asked,
                     end.why});
  }
  return views;
}

void LinkBook::OnTick(uint64_t now_ns) {
  ends_.set_now(now_ns);
  for (auto& [name, end] : ends_.all()) {
    if (end.state == LinkState::kBroken) {
      ends_.LookAfter(end);
    } else if (end.state == LinkState::kUp && ends_.IsFull(end.rank)) {
      ends_.LookAtTraffic(end);
    }
  }
}

void LinkBook::OnRankEnded(uint32_t rank, ErrorCode error, uint64_t now_ns) {
  ends_.set_now(now_ns);
  ended_.insert(rank);
  for (auto next = ends_.all().begin(); next != ends_.all().end();) {
    LinkEnd& end = next->second;
    if (end.rank != rank && end.peer != rank) {
      ++next;
      continue;
    }
    if (end.rank != rank && end.counted) {
      messages_.Order(end, LinkOp::kEnd, error);
    }
    ends_.LetGo(end);
    next = ends_.all().erase(next);
  }
}

void LinkBook::OnNodeCut(uint32_t node, uint64_t now_ns) {
  ends_.set_now(now_ns);
  for (auto& [name, end] : ends_.all()) {
    if (plan_.node_of_rank[end.peer] != node || end.state == LinkState::kNone) {
      continue;
    }
    end.is_peer_wanting = false;
    end.why = "the two nodes were cut off from each other";
    end.joined_link = end.link;
    if (end.counted) {
      messages_.Order(end, LinkOp::kEnd, ErrorCode::kLinkDown);
    }
    ends_.RefuseWish(end, ErrorCode::kLinkDown);
    ends_.LetGo(end);
  }
}

}  // namespace ferry::daemon
