// LinkBook: what ranks here say.
#include <cstring>

#include "daemon/links/link_book.h"

namespace ferry::daemon {

using attach::LinkEvent;
using attach::LinkOp;
using control::LinkNews;

namespace {

std::string TextOf(const attach::LinkReply& reply) {
  return {reply.text, strnlen(reply.text, sizeof(reply.text))};
}

}  // namespace

// ---- A wish ----

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
  if (entry.wish != Wish::kNone) {
    return;  // no correct rank asks twice
  }
  switch (entry.state) {
    case LinkState::kNone:
      return Seek(entry);
    case LinkState::kUp:
      if (entry.is_returned && !entry.is_returning) {
        return UseAgain(entry);
      }
      [[fallthrough]];       // it has been returned, or soon will be
    case LinkState::kUsing:  // wishes may overtake answers
    case LinkState::kEnding:
      entry.wish = Wish::kDeferred;
      return;
    case LinkState::kOpening:
    case LinkState::kWaiting:
    case LinkState::kBroken:
      entry.wish = Wish::kWaiting;
      return;
    case LinkState::kAsked:
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
    entry.wish = Wish::kWaiting;
    return Begin(entry);
  }
  entry.wish = Wish::kTold;
  Enter(entry, LinkState::kAsked);
  Tell(entry, LinkNews::ASKED);
}

// The rank here has returned its direction, and wants to use the link again.
void LinkBook::UseAgain(Entry& entry) {
  if (!Leads(entry)) {
    entry.wish = Wish::kTold;
    return Tell(entry, LinkNews::ASKED);  // the leader may be about to end it
  }
  entry.is_returned = false;
  OrderUse(entry);
}

// ---- Answers to orders, and what is said unasked ----

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
      OnCannot(entry, {static_cast<ErrorCode>(reply.code), Printable(TextOf(reply))});
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
      OnLost(entry, Printable(TextOf(reply)));
      return {};
  }
  return {ErrorCode::kCorrupt,
          PairText(rank, reply.peer) + ": there is no event " + std::to_string(reply.event)};
}

Status LinkBook::OnOpened(Entry& entry, const attach::LinkReply& reply) {
  if (reply.address_bytes == 0 || reply.address_bytes > attach::kLinkAddressBytes) {
    return {ErrorCode::kCorrupt,
            "an endpoint has an address of " + std::to_string(reply.address_bytes) + " bytes"};
  }
  if (entry.state == LinkState::kOpening) {
    Enter(entry, LinkState::kWaiting);
    TellEnd(entry, Leads(entry) ? LinkNews::WANTED : LinkNews::OPENED, reply);
  }
  return {};
}

void LinkBook::OnUsed(Entry& entry) {
  if (entry.state != LinkState::kUsing) {  // it is used again
    // The rank may have had both orders before it, and nothing to give back yet.
    if (entry.state == LinkState::kUp && entry.is_returning && !entry.is_returned) {
      Order(entry, LinkOp::kReturn);
    }
    return;
  }
  Enter(entry, LinkState::kUp);
  entry.why.clear();
  entry.active_ns = now_ns_;
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
    RefuseWish(entry, why.code());  // it may have asked behind its answer
    LetGo(entry);
  } else if (entry.state == LinkState::kUsing && Leads(entry)) {
    Tell(entry, LinkNews::ENDED);
    End(entry, why.code());
  } else if (entry.state == LinkState::kUsing) {
    TellRefusal(entry, entry.link, why);  // the leader has both directions returned, and ends it
    Enter(entry, LinkState::kUp);
    entry.is_returned = true;
  } else if (entry.state == LinkState::kUp) {
    // It was to be used again, and its connection is gone; or the rank gives it up.
    if (!std::exchange(entry.is_returned, true) && !Leads(entry)) {
      TellRound(entry, LinkNews::RETURNED);
    }
    entry.is_returning ? TryEnd(entry) : Return(entry, true);
  }
}

void LinkBook::OnReturned(Entry& entry) {
  if (entry.state != LinkState::kUp || entry.is_returned) {
    return;
  }
  entry.is_returned = true;
  if (!Leads(entry)) {
    TellRound(entry, LinkNews::RETURNED);
  }
  if (entry.wish == Wish::kDeferred && !entry.is_returning) {
    return UseAgain(entry);
  }
  TryEnd(entry);
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
  next ? OnWanted(entry, *next) : AskAgain(entry);
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

}  // namespace ferry::daemon
