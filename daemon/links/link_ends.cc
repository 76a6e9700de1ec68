#include "daemon/links/link_ends.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/tls/secrets.h"

namespace ferry::daemon {

using attach::LinkOp;
using control::LinkNews;

LinkEnds::LinkEnds(const JobPlan& plan, LinkCalls& calls, LinkMessages& messages, LinkLimits limits)
    : plan_(plan), calls_(calls), messages_(messages), limits_(limits) {}

// ---- The table ----

LinkEnd& LinkEnds::At(uint32_t rank, uint32_t peer) {
  const auto [found, is_new] = ends_.try_emplace({rank, peer});
  if (is_new) {
    found->second.rank = rank;
    found->second.peer = peer;
    found->second.since_ns = now_ns_;
  }
  return found->second;
}

LinkEnd* LinkEnds::Find(uint32_t rank, uint32_t peer) {
  const auto found = ends_.find({rank, peer});
  return found == ends_.end() ? nullptr : &found->second;
}

void LinkEnds::Clear() {
  ends_.clear();
  links_ = 0;
  links_of_.clear();
}

// ---- Limits ----

uint64_t LinkEnds::LinksOf(uint32_t rank) const {
  const auto found = links_of_.find(rank);
  return found == links_of_.end() ? 0 : found->second;
}

void LinkEnds::SetBar(const LinkBar& bar) {
  std::erase_if(bars_, [&](const LinkBar& old) { return bar.Covers(old.rank, old.peer); });
  if (bar.is_barred || !bars_.empty()) {
    bars_.push_back(bar);
  }
}

Status LinkEnds::CheckBars(uint32_t rank, uint32_t peer) const {
  const auto last = std::find_if(bars_.rbegin(), bars_.rend(),
                                 [&](const LinkBar& bar) { return bar.Covers(rank, peer); });
  if (last != bars_.rend() && last->is_barred) {
    return {ErrorCode::kPermissionDenied, "the administrator has taken it back"};
  }
  return {};
}

// Ok if the pair may have a link. Takes nothing from the user's quota.
Status LinkEnds::Check(const LinkEnd& end) {
  FERRY_RETURN_IF_ERROR(CheckBars(end.rank, end.peer));
  FERRY_RETURN_IF_ERROR(calls_.MayLink(plan_.node_of_rank[end.peer]));
  if (limits_.per_job != 0 && links_ >= limits_.per_job) {
    return {ErrorCode::kLimitExceeded, "the ranks of this job here have " + std::to_string(links_) +
                                           " links, as many as direct_links_per_job allows"};
  }
  if (IsFull(end.rank)) {
    // If a link gives way, the rank asks again later.
    const char* const room = MakeRoom(end.rank) ? "one goes back" : "none is idle";
    return {ErrorCode::kLimitExceeded,
            "rank " + std::to_string(end.rank) + " has " + std::to_string(LinksOf(end.rank)) +
                " links, as many as direct_links_per_rank allows, and " + room};
  }
  return {};
}

// Takes back the link that has been idle for longest. False: all are busy.
bool LinkEnds::MakeRoom(uint32_t rank) {
  LinkEnd* idlest = nullptr;
  for (auto next = ends_.lower_bound({rank, 0}); next != ends_.end() && next->first.first == rank;
       ++next) {
    LinkEnd& end = next->second;
    if (!end.counted) {
      continue;
    }
    if (end.is_returning || end.state == LinkState::kEnding) {
      return true;
    }
    if (end.state == LinkState::kUp) {
      LookAtTraffic(end);
      if (now_ns_ - std::min(now_ns_, end.active_ns) >= limits_.idle_ns &&
          (idlest == nullptr || end.active_ns < idlest->active_ns)) {
        idlest = &end;
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

void LinkEnds::LookAtTraffic(LinkEnd& end) {
  const uint64_t traffic = calls_.Traffic(end.rank, end.peer);
  if (std::exchange(end.traffic, traffic) != traffic || calls_.HasTransfers(end.rank, end.peer)) {
    end.active_ns = now_ns_;
  }
}

Status LinkEnds::Grant(LinkEnd& end) {
  FERRY_RETURN_IF_ERROR(Check(end));
  StatusOr<QuotaHold> hold = calls_.TakeQuota();
  FERRY_RETURN_IF_ERROR(hold.status());
  end.quota = std::move(*hold);
  end.counted = true;
  ++links_;
  ++links_of_[end.rank];
  return {};
}

// ---- A link begins ----

void LinkEnds::Enter(LinkEnd& end, LinkState state) {
  end.state = state;
  end.since_ns = now_ns_;
}

void LinkEnds::Begin(LinkEnd& end) {
  ++end.link;
  DrawKey(end);
  Enter(end, LinkState::kOpening);
  messages_.Order(end, LinkOp::kOpen);
}

void LinkEnds::DrawKey(LinkEnd& end) {
  FillRandom({reinterpret_cast<uint8_t*>(end.receive_key.data()), sizeof(end.receive_key)});
}

void LinkEnds::Seek(LinkEnd& end) {
  const Status status = end.Leads() ? Grant(end) : Check(end);
  if (!status.ok()) {
    return Refuse(end, status);
  }
  if (end.Leads()) {
    end.wish = LinkWish::kWaiting;
    return Begin(end);
  }
  end.wish = LinkWish::kTold;
  Enter(end, LinkState::kAsked);
  messages_.Tell(end, LinkNews::ASKED);
}

void LinkEnds::OnAsked(LinkEnd& end) {
  switch (end.state) {
    case LinkState::kNone:
      if (const Status status = Grant(end); !status.ok()) {
        end.why = status.message();
        return messages_.TellRefusal(end, 0, status);
      }
      return Begin(end);
    case LinkState::kUp:
    case LinkState::kEnding:
      end.is_peer_wanting = true;
      return AllowPeer(end);
    case LinkState::kBroken:
      return messages_.TellRefusal(end, 0, {ErrorCode::kLinkDown, "the link before has broken"});
    case LinkState::kAsked:  // no leader is in this state
    case LinkState::kOpening:
    case LinkState::kWaiting:
    case LinkState::kUsing:
      return;
  }
}

void LinkEnds::OnWanted(LinkEnd& end, const LinkNews& news) {
  if (news.link() <= end.link) {
    return;  // a repetition
  }
  if (end.state == LinkState::kBroken) {
    return messages_.TellRefusal(end, news.link(),
                                 {ErrorCode::kLinkDown, "the link before has broken"});
  }
  if (end.state != LinkState::kAsked && end.state != LinkState::kNone) {
    end.next = news;  // until the rank here has let go of its end
    if (end.state != LinkState::kEnding) {
      End(end, ErrorCode::kLinkDown);  // the leader does not know it any more
    }
    return;
  }
  LetGo(end);
  end.link = news.link();
  if (const Status status = Grant(end); !status.ok()) {
    end.why = status.message();
    messages_.TellRefusal(end, end.link, status);
    return RefuseWish(end, status.code());
  }
  if (end.wish != LinkWish::kNone) {
    end.wish = LinkWish::kWaiting;
  }
  end.peer_address = news.address();
  end.send_key = {news.key(0), news.key(1)};
  DrawKey(end);
  Enter(end, LinkState::kOpening);
  messages_.OrderWithPeer(end, LinkOp::kOpen);
}

void LinkEnds::Refuse(LinkEnd& end, const Status& why) {
  end.why = why.message();
  LetGo(end);
  end.wish = LinkWish::kNone;
  messages_.Order(end, LinkOp::kRefuse, why.code());
}

void LinkEnds::RefuseWish(LinkEnd& end, ErrorCode code) {
  if (std::exchange(end.wish, LinkWish::kNone) != LinkWish::kNone) {
    messages_.OrderRefusal(end, code);
  }
}

void LinkEnds::AskAgain(LinkEnd& end) {
  const bool peer_wants = std::exchange(end.is_peer_wanting, false);
  switch (end.wish) {
    case LinkWish::kNone:
      break;
    case LinkWish::kWaiting:
      RefuseWish(end, ErrorCode::kLinkDown);
      break;
    case LinkWish::kDeferred:
      Seek(end);
      break;
    case LinkWish::kTold:
      Enter(end, LinkState::kAsked);
      break;
  }
  if (peer_wants && end.state == LinkState::kNone) {
    OnAsked(end);
  }
}

// ---- It is used, taken back, and ends ----

void LinkEnds::OrderUse(LinkEnd& end) {
  end.wish = LinkWish::kNone;
  end.state == LinkState::kUp ? messages_.Order(end, LinkOp::kUse)
                              : messages_.OrderWithPeer(end, LinkOp::kUse);
}

void LinkEnds::AllowPeer(LinkEnd& end) {
  if (end.state == LinkState::kUp && end.is_peer_returned && !end.is_returning &&
      end.is_peer_wanting) {
    end.is_peer_wanting = end.is_peer_returned = false;
    ++end.round;
    messages_.TellRound(end, LinkNews::USED);
  }
}

void LinkEnds::Return(LinkEnd& end, bool tell) {
  end.is_returning = true;
  if (tell) {
    messages_.Tell(end, LinkNews::RETURN);
  }
  if (end.state == LinkState::kUp && !end.is_returned) {
    messages_.Order(end, LinkOp::kReturn);
  }
  TryEnd(end);
}

void LinkEnds::TryEnd(LinkEnd& end) {
  if (end.Leads() && end.state == LinkState::kUp && end.is_returned && end.is_peer_returned) {
    messages_.Tell(end, LinkNews::ENDED);
    End(end, ErrorCode::kOk);
  }
}

void LinkEnds::End(LinkEnd& end, ErrorCode code) {
  Enter(end, LinkState::kEnding);
  messages_.Order(end, LinkOp::kEnd, code);
}

void LinkEnds::LetGo(LinkEnd& end) {
  if (std::exchange(end.counted, false)) {
    --links_;
    --links_of_[end.rank];
    end.quota.Release();
  }
  end.receive_key = end.send_key = {};
  end.peer_address.clear();
  end.round = 0;
  end.is_returned = end.is_peer_returned = end.is_returning = false;
  end.next.reset();
  end.is_end_ordered = end.is_parting = end.is_parted = end.is_peer_parted = false;
  Enter(end, LinkState::kNone);
}

// ---- It breaks ----

void LinkEnds::Break(LinkEnd& end, const std::string& text) {
  Enter(end, LinkState::kBroken);
  end.why = "its connection broke" + (text.empty() ? text : ": " + text);
  if (const auto next = std::exchange(end.next, std::nullopt)) {
    messages_.TellRefusal(end, next->link(), {ErrorCode::kLinkDown, "the link before has broken"});
  }
  if (end.wish != LinkWish::kNone) {
    end.wish = LinkWish::kWaiting;  // until the rank may ask anew
  }
  end.is_peer_wanting = false;
  end.is_end_ordered = end.is_parting = end.is_parted = end.is_peer_parted = false;
}

void LinkEnds::EndBroken(LinkEnd& end) {
  if (!end.counted) {
    Part(end);
  } else if (!std::exchange(end.is_end_ordered, true)) {
    messages_.Order(end, LinkOp::kEnd, ErrorCode::kLinkDown);
  } else {
    LookAfter(end);
  }
}

void LinkEnds::Part(LinkEnd& end) {
  if (!std::exchange(end.is_parting, true)) {
    calls_.Part(end.rank, end.peer);
  }
  LookAfter(end);
}

void LinkEnds::LookAfter(LinkEnd& end) {
  if (end.is_parting && !end.is_parted && calls_.IsParted(end.rank, end.peer)) {
    end.is_parted = true;
    messages_.Tell(end, LinkNews::PARTED);
  }
  if (end.is_parted && end.is_peer_parted && calls_.AreRejoined(end.rank, end.peer)) {
    end.joined_link = end.link = std::max(end.link, end.parted_link);
    Refuse(end, {ErrorCode::kLinkDown, end.why});
  }
}

}  // namespace ferry::daemon
