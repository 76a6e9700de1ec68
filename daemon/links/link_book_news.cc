// LinkBook: what the daemons of other nodes say.
#include <algorithm>
#include <initializer_list>

#include "daemon/links/link_book.h"

namespace ferry::daemon {

using attach::LinkOp;
using control::LinkNews;

namespace {

bool IsOneOf(LinkNews::Kind kind, std::initializer_list<LinkNews::Kind> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

}  // namespace

// What passes is acted on, or is old.
Status LinkBook::CheckNews(uint32_t node, const LinkNews& news) const {
  const uint32_t peer = news.rank();
  const uint32_t rank = news.peer();
  const LinkNews::Kind kind = news.kind();
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidArgument, PairText(peer, rank) + what);
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
  now_ns_ = now_ns;
  FERRY_RETURN_IF_ERROR(CheckNews(node, news));
  const uint32_t peer = news.rank();
  const uint32_t rank = news.peer();
  if (ended_.contains(rank) || ended_.contains(peer)) {
    return {};  // the other daemon hears, or has heard, of that end
  }
  Entry& entry = At(rank, peer);
  // Some are of a link that both know. Who has not heard that it is over is told.
  const bool is_known = news.link() == entry.link && entry.state != LinkState::kNone;
  const auto tell_end = [&] {
    LinkNews answer = NewsOf(entry, LinkNews::ENDED);
    answer.set_link(news.link());
    Tell(entry, answer);
  };
  switch (news.kind()) {
    case LinkNews::ASKED:
      OnAsked(entry);
      break;
    case LinkNews::WANTED:
      OnWanted(entry, news);
      break;
    case LinkNews::REFUSED:
      OnPeerRefused(entry, news.link(),
                    {static_cast<ErrorCode>(news.error()), Printable(news.text())});
      break;
    case LinkNews::ENDED:
      OnPeerEnded(entry, news.link());
      break;
    case LinkNews::PARTED:
      OnPeerParted(entry, news.link());
      break;
    case LinkNews::OPENED:
      is_known ? OnPeerOpened(entry, news) : tell_end();
      break;
    case LinkNews::USED:
      is_known ? OnPeerUsed(entry, news.round()) : tell_end();
      break;
    case LinkNews::BROKEN:
      is_known ? OnPeerBroken(entry) : tell_end();
      break;
    case LinkNews::RETURN:
      if (is_known && !entry.is_returning) {
        Return(entry, false);
      }
      break;
    case LinkNews::RETURNED:
      if (is_known) {
        OnPeerReturned(entry, news.round());
      }
      break;
    default:
      break;  // CheckNews knows none
  }
  return {};
}

void LinkBook::OnRefused(const LinkNews& news, const Status& refusal, uint64_t now_ns) {
  now_ns_ = now_ns;
  const Status status(refusal.code(), Printable(refusal.message()));
  const auto found = entries_.find({news.rank(), news.peer()});
  if (found == entries_.end()) {
    return;
  }
  Entry& entry = found->second;
  if (news.kind() == LinkNews::ASKED) {
    OnPeerRefused(entry, 0, status);
  } else if (news.link() == entry.link && entry.state == LinkState::kWaiting &&
             (news.kind() == LinkNews::WANTED || news.kind() == LinkNews::OPENED)) {
    entry.why = status.message();
    TellRefusal(entry, Leads(entry) ? 0 : entry.link, status);
    End(entry, status.code());
  }
}

// ---- A link begins ----

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

void LinkBook::OnWanted(Entry& entry, const LinkNews& news) {
  if (news.link() <= entry.link) {
    return;  // said again
  }
  if (entry.state == LinkState::kBroken) {
    return TellRefusal(entry, news.link(), {ErrorCode::kLinkDown, "the link before has broken"});
  }
  if (entry.state != LinkState::kAsked && entry.state != LinkState::kNone) {
    entry.next = news;  // until the rank here has let go of its end
    if (entry.state != LinkState::kEnding) {
      End(entry, ErrorCode::kLinkDown);  // the leader knows nothing of it any more
    }
    return;
  }
  LetGo(entry);
  entry.link = news.link();
  if (const Status status = Grant(entry); !status.ok()) {
    entry.why = status.message();
    TellRefusal(entry, entry.link, status);
    return RefuseWish(entry, status.code());
  }
  if (entry.wish != Wish::kNone) {
    entry.wish = Wish::kWaiting;
  }
  entry.peer_address = news.address();
  entry.send_key = {news.key(0), news.key(1)};
  DrawKey(entry);
  Enter(entry, LinkState::kOpening);
  OrderWithPeer(entry, LinkOp::kOpen);
}

void LinkBook::OnPeerOpened(Entry& entry, const LinkNews& news) {
  if (entry.state == LinkState::kUp && entry.round == 1) {
    TellRound(entry, LinkNews::USED);  // perhaps that got lost
  }
  if (entry.state == LinkState::kWaiting) {
    entry.peer_address = news.address();
    entry.send_key = {news.key(0), news.key(1)};
    Enter(entry, LinkState::kUsing);
    OrderUse(entry);
  }
}

// The other daemon refuses: what was asked for (`link` is 0), or a link of this number.
void LinkBook::OnPeerRefused(Entry& entry, uint64_t link, const Status& why) {
  if (link == 0 && entry.wish == Wish::kTold) {
    if (entry.state == LinkState::kAsked) {
      Enter(entry, LinkState::kNone);
    }
    entry.why = why.message();
    return RefuseWish(entry, why.code());
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
    return OrderUse(entry);
  }
  if (entry.state != LinkState::kUp || !entry.is_returned) {
    return;
  }
  entry.round = round;
  if (entry.is_returning) {
    if (entry.wish == Wish::kTold) {
      entry.wish = Wish::kDeferred;  // the leader has answered
    }
    return TellRound(entry, LinkNews::RETURNED);
  }
  entry.is_returned = false;
  OrderUse(entry);
}

void LinkBook::OnPeerReturned(Entry& entry, uint32_t round) {
  if (entry.state == LinkState::kUp && round == entry.round) {
    entry.is_peer_returned = true;
    AllowPeer(entry);
    TryEnd(entry);
  }
}

// ---- The end ----

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

}  // namespace ferry::daemon
