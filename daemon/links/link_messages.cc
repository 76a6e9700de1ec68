#include "daemon/links/link_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

std::string LinkText(uint32_t rank, uint32_t peer) {
  return "the link of rank " + std::to_string(rank) + " to rank " + std::to_string(peer);
}

std::string Printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// ---- News ----

LinkNews LinkMessages::NewsOf(const LinkEnd& end, LinkNews::Kind kind) {
  LinkNews news;
  news.set_kind(kind);
  news.set_rank(end.rank);
  news.set_peer(end.peer);
  news.set_link(end.link);
  return news;
}

void LinkMessages::Tell(const LinkEnd& end, const LinkNews& news) {
  calls_.Tell(plan_.node_of_rank[end.peer], news);
}

void LinkMessages::Tell(const LinkEnd& end, LinkNews::Kind kind) { Tell(end, NewsOf(end, kind)); }

void LinkMessages::TellEnd(const LinkEnd& end, LinkNews::Kind kind,
                           const attach::LinkReply& reply) {
  LinkNews news = NewsOf(end, kind);
  news.set_address(reply.address, reply.address_bytes);
  news.add_key(end.receive_key[0]);
  news.add_key(end.receive_key[1]);
  Tell(end, news);
}

void LinkMessages::TellRefusal(const LinkEnd& end, uint64_t link, const Status& why) {
  LinkNews news = NewsOf(end, LinkNews::REFUSED);
  news.set_link(link);
  news.set_error(static_cast<int32_t>(why.code()));
  news.set_text(why.message());
  Tell(end, news);
}

void LinkMessages::TellRound(const LinkEnd& end, LinkNews::Kind kind) {
  LinkNews news = NewsOf(end, kind);
  news.set_round(end.round);
  Tell(end, news);
}

// ---- Orders ----

attach::LinkOrder LinkMessages::OrderOf(const LinkEnd& end, LinkOp op) {
  attach::LinkOrder order{};
  order.op = static_cast<uint32_t>(op);
  order.peer = end.peer;
  order.link = end.link;
  return order;
}

void LinkMessages::Order(const LinkEnd& end, LinkOp op, ErrorCode code) {
  attach::LinkOrder order = OrderOf(end, op);
  order.code = static_cast<int32_t>(code);
  calls_.Order(end.rank, order);
}

void LinkMessages::OrderWithPeer(const LinkEnd& end, LinkOp op) {
  attach::LinkOrder order = OrderOf(end, op);
  order.address_bytes = static_cast<uint32_t>(end.peer_address.size());
  std::memcpy(order.address, end.peer_address.data(), end.peer_address.size());
  std::copy(end.send_key.begin(), end.send_key.end(), order.send_key);
  std::copy(end.receive_key.begin(), end.receive_key.end(), order.receive_key);
  calls_.Order(end.rank, order);
}

void LinkMessages::OrderRefusal(const LinkEnd& end, ErrorCode code) {
  attach::LinkOrder order = OrderOf(end, LinkOp::kRefuse);
  order.link = 0;
  order.code = static_cast<int32_t>(code);
  calls_.Order(end.rank, order);
}

}  // namespace ferry::daemon
