// The book of a job's direct links is told anything: by ranks here in answer to orders, or without;
// by another node's daemon; and by the data plane. Whatever comes, it keeps within its limits,
// orders only its own ranks, tells only other nodes, and holds nothing once all ranks are gone.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "daemon/links/link_book.h"
#include "tests/fuzz/fuzz_input.h"

namespace ferry::daemon {
namespace {

using attach::LinkEvent;
using attach::LinkOp;
using fuzz::FuzzInput;

constexpr uint32_t kMaxSteps = 256;
constexpr LinkLimits kLimits = {.per_rank = 2, .per_job = 3, .idle_ns = 100};
constexpr uint64_t kQuota = 3;
constexpr size_t kMostKept = 64;

void Check(bool condition) {
  if (!condition) {
    std::abort();
  }
}

// Ranks 0 and 1 are here, 2 and 3 on node 1, 4 on node 2.
JobPlan Plan() {
  JobPlan plan;
  plan.job_id = "j";
  plan.node = 0;
  plan.node_of_rank = {0, 0, 1, 1, 2};
  plan.local_index = {0, 1, 0, 1, 0};
  return plan;
}

class LinksFuzz final : public LinkCalls {
 public:
  LinksFuzz() : plan_(Plan()), ledger_({.links = kQuota}), book_(plan_, this, kLimits) {}

  void Step(FuzzInput& input) {
    now_ns_ += input.Below(64);
    switch (input.Below(12)) {
      case 0:
      case 1:
        Ask(input);
        break;
      case 2:
      case 3:
      case 4:
        Reply(input);
        break;
      case 5:
      case 6:
      case 7:
        TellNews(input);
        break;
      case 8:
        traffic_ += input.Below(2);
        has_transfers_ = input.Below(4) == 1;
        is_parted_ = input.Below(4) != 1;
        may_link_ = input.Below(8) == 1 ? Status(ErrorCode::kUnsupported, "no") : Status();
        book_.OnTick(now_ns_);
        break;
      case 9:
        Rare(input);
        break;
      default:
        book_.OnTick(now_ns_);
    }
    CheckLimits();
  }
  // All ranks leave, here and there.
  void End() {
    for (uint32_t rank = 0; rank < plan_.size(); ++rank) {
      book_.OnRankEnded(rank, ErrorCode::kPeerDied, now_ns_);
    }
    Check(book_.links() == 0 && ledger_.Used().empty());
    is_parted_ = true;
    book_.OnTick(now_ns_ + 1'000);
    book_.Clear();
  }

  // ---- LinkCalls ----
  void Tell(uint32_t node, const control::LinkNews& news) override {
    Check(node != plan_.node && node < 3);
    Check(IsHere(news.rank()) && news.peer() < plan_.size() &&
          plan_.node_of_rank[news.peer()] == node);
    told_.push_back(news);
    Shorten(&told_);
  }
  void Order(uint32_t rank, const attach::LinkOrder& order) override {
    Check(IsHere(rank) && order.peer < plan_.size() && !IsHere(order.peer));
    Check(order.address_bytes <= attach::kLinkAddressBytes);
    orders_.emplace_back(rank, order);
    Shorten(&orders_);
  }
  Status MayLink(uint32_t node) const override {
    Check(node != plan_.node);
    return may_link_;
  }
  StatusOr<QuotaHold> TakeQuota() override { return ledger_.Take(1000, {.links = 1}); }
  uint64_t Traffic(uint32_t, uint32_t) const override { return traffic_; }
  bool HasTransfers(uint32_t, uint32_t) const override { return has_transfers_; }
  void Part(uint32_t rank, uint32_t peer) override { Check(IsHere(rank) && !IsHere(peer)); }
  bool IsParted(uint32_t, uint32_t) override { return is_parted_; }
  bool AreRejoined(uint32_t, uint32_t) override { return is_parted_; }

 private:
  bool IsHere(uint32_t rank) const {
    return rank < plan_.size() && plan_.node_of_rank[rank] == plan_.node;
  }
  template <typename T>
  static void Shorten(std::deque<T>* kept) {
    if (kept->size() > kMostKept) {
      kept->pop_front();
    }
  }
  void CheckLimits() const {
    uint64_t links = 0;
    for (const uint32_t rank : {0U, 1U}) {
      Check(book_.LinksOf(rank) <= kLimits.per_rank);
      links += book_.LinksOf(rank);
    }
    Check(links == book_.links() && links <= kLimits.per_job);
    const auto used = ledger_.Used();
    Check((used.empty() ? 0 : used.begin()->second.links) == links);
  }

  // As the daemon lets ranks ask.
  void Ask(FuzzInput& input) { book_.Ask(input.Below(2), 2 + input.Below(3), now_ns_); }

  // Of a rank that obeys, or nearly.
  void Reply(FuzzInput& input) {
    uint32_t rank = input.Below(2);
    attach::LinkReply reply{};
    reply.event = input.Below(8);
    reply.peer = 2 + input.Below(3);
    reply.link = input.Below(4);
    if (!orders_.empty() && input.Below(8) != 1) {
      const auto& [its_rank, order] = orders_[input.Below(kMostKept) % orders_.size()];
      constexpr LinkEvent kRight[] = {LinkEvent::kReturned, LinkEvent::kOpened, LinkEvent::kUsed,
                                      LinkEvent::kReturned, LinkEvent::kEnded,  LinkEvent::kLost};
      rank = its_rank;
      reply.event = static_cast<uint32_t>(kRight[order.op % std::size(kRight)]);
      reply.peer = order.peer;
      reply.link = order.link;
      if (input.Below(4) == 1) {
        reply.event = static_cast<uint32_t>(LinkEvent::kReturned) + input.Below(4);
      }
    }
    reply.address_bytes = 8;
    reply.flags = input.Below(2);
    if (input.Below(4) == 1) {
      input.Spoil(&reply);
    }
    (void)book_.OnReply(rank, reply, now_ns_).ok();
  }

  void TellNews(FuzzInput& input) {
    control::LinkNews news;
    news.set_kind(static_cast<control::LinkNews::Kind>(input.Below(12)));
    news.set_rank(input.Below(6));
    news.set_peer(input.Below(6));
    news.set_link(input.Below(5));
    news.set_round(input.Below(4));
    if (!told_.empty() && input.Below(4) != 1) {  // about what it was told
      const control::LinkNews& about = told_[input.Below(kMostKept) % told_.size()];
      news.set_rank(about.peer());
      news.set_peer(about.rank());
      news.set_link(about.link() + (input.Below(8) == 1 ? 1 : 0));
      news.set_round(about.round());
    }
    news.set_address(input.TakeText(input.Below(4) == 1 ? input.Below(200) : 8));
    for (uint32_t keys = input.Below(8) == 1 ? input.Below(4) : 2; keys > 0; --keys) {
      news.add_key(input.Take<uint32_t>());
    }
    if (news.kind() == control::LinkNews::REFUSED || input.Below(8) == 1) {
      news.set_error(input.Take<int8_t>());
      news.set_text(input.TakeText(input.Below(64)));
    }
    if (input.Below(8) == 1 && !told_.empty()) {  // the other daemon does not take what it was told
      const control::LinkNews refused = told_[input.Below(kMostKept) % told_.size()];
      return book_.OnRefused(refused, {ErrorCode::kInvalidArgument, "refused"}, now_ns_);
    }
    // The registry has checked that the node is another one.
    const bool is_elsewhere = news.rank() < plan_.size() && !IsHere(news.rank());
    const uint32_t node =
        is_elsewhere && input.Below(8) != 1 ? plan_.node_of_rank[news.rank()] : 1 + input.Below(2);
    (void)book_.OnNews(node, news, now_ns_).ok();
  }

  void Rare(FuzzInput& input) {
    switch (input.Below(8)) {
      case 0:
        book_.OnNodeCut(1 + input.Below(2), now_ns_);
        break;
      case 1:
        book_.OnRankEnded(input.Below(5), ErrorCode::kPeerDied, now_ns_);
        break;
      case 2:
        book_.TakeBack(input.Below(2) == 0 ? kAnyRank : input.Below(2),
                       input.Below(2) == 0 ? kAnyRank : 2 + input.Below(3), input.Below(2) == 0,
                       now_ns_);
        break;
      case 3:
        now_ns_ += 10'000;
        break;
      default:
        for (const LinkView& view : book_.Views()) {
          Check(IsHere(view.rank) && !IsHere(view.peer));
        }
    }
  }

  const JobPlan plan_;
  QuotaLedger ledger_;
  std::deque<std::pair<uint32_t, attach::LinkOrder>> orders_;
  std::deque<control::LinkNews> told_;
  uint64_t now_ns_ = 1;
  uint64_t traffic_ = 0;
  bool has_transfers_ = false;
  bool is_parted_ = true;
  Status may_link_;
  LinkBook book_;
};

}  // namespace
}  // namespace ferry::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ferry::fuzz::FuzzInput input(data, size);
  ferry::daemon::LinksFuzz links;
  for (uint32_t step = 0; step < ferry::daemon::kMaxSteps && !input.empty(); ++step) {
    links.Step(input);
  }
  links.End();
  return 0;
}
