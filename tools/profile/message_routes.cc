#include "tools/profile/message_routes.h"

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>

namespace ferry::tools {
namespace {

// Of more numbers k than that none is tried: too little is known of the messages.
constexpr int64_t kMostChoices = 256;
// So much may the clock by which ranks measure differ from their node's (client/api/quick_clock.h).
constexpr int64_t kRankClockNs = 1000;

// The messages between two ranks, and their stops on one side.
struct Route {
  std::span<const RoutedMessage> messages;
  std::span<RouteStop> stops;
  // Messages that seem to have begun then or later, and to have come by then, have a stop.
  int64_t since_ns = INT64_MAX;
  int64_t until_ns = INT64_MIN;
  int64_t before_ns = kRankClockNs;  // by so much a stop may seem to be before its message begins,
  int64_t after_ns = kRankClockNs;   // or after it ends
};

bool HasStop(const Route& route, const RoutedMessage& message) {
  return message.begin_ns >= route.since_ns && message.end_ns <= route.until_ns;
}

// The stops of other messages may be there or not.
bool Fits(const Route& route, int64_t k) {
  for (size_t n = 0; n < route.messages.size(); ++n) {
    const int64_t at = static_cast<int64_t>(n) + k;
    const bool is_there = at >= 0 && at < static_cast<int64_t>(route.stops.size());
    if (is_there ? route.stops[static_cast<size_t>(at)].bytes != route.messages[n].bytes
                 : HasStop(route, route.messages[n])) {
      return false;
    }
  }
  return true;
}

std::optional<int64_t> FindShift(const Route& route) {
  const auto is_earlier = [](const RouteStop& stop, int64_t ns) { return stop.at_ns < ns; };
  auto least = -static_cast<int64_t>(route.messages.size());
  auto most = static_cast<int64_t>(route.stops.size());
  for (size_t n = 0; n < route.messages.size(); ++n) {
    const RoutedMessage& message = route.messages[n];
    if (!HasStop(route, message)) {
      continue;
    }
    const auto index = [&](int64_t ns) {
      return std::lower_bound(route.stops.begin(), route.stops.end(), ns, is_earlier) -
             route.stops.begin() - static_cast<int64_t>(n);
    };
    least = std::max<int64_t>(least, index(message.begin_ns - route.before_ns));
    most = std::min<int64_t>(most, index(message.end_ns + route.after_ns + 1) - 1);
  }
  std::optional<int64_t> found;
  for (int64_t k = least; k <= most && most - least < kMostChoices; ++k) {
    if (Fits(route, k)) {
      if (found.has_value()) {
        return std::nullopt;
      }
      found = k;
    }
  }
  return found;
}

void Assign(const Route& route, int64_t k) {
  for (size_t n = 0; n < route.messages.size(); ++n) {
    const RoutedMessage& message = route.messages[n];
    const int64_t at = static_cast<int64_t>(n) + k;
    if (at >= 0 && at < static_cast<int64_t>(route.stops.size())) {
      RouteStop& stop = route.stops[static_cast<size_t>(at)];
      const bool is_within = message.begin_ns <= stop.at_ns && stop.at_ns < message.end_ns;
      stop.id = is_within ? message.id : 0;
    }
  }
}

template <typename One>
auto EndsOf(const One& one) {
  return std::tuple(one.from, one.to);
}

// Counts how many elements at the beginning of `all` have the same two ranks as the first.
template <typename One>
size_t CountAlike(std::span<One> all) {
  size_t count = 0;
  while (count < all.size() && EndsOf(all[count]) == EndsOf(all[0])) {
    ++count;
  }
  return count;
}

}  // namespace

void FindStops(RouteSide side, const std::vector<RouteNode>& nodes,
               std::vector<RoutedMessage>* messages, std::vector<RouteStop>* stops) {
  std::stable_sort(messages->begin(), messages->end(), [](const auto& a, const auto& b) {
    return std::tuple(a.from, a.to, a.begin_ns) < std::tuple(b.from, b.to, b.begin_ns);
  });
  std::stable_sort(stops->begin(), stops->end(), [](const auto& a, const auto& b) {
    return std::tuple(a.from, a.to, a.at_ns) < std::tuple(b.from, b.to, b.at_ns);
  });
  const bool is_departure = side == RouteSide::kDeparture;
  std::span<RouteStop> left(*stops);
  std::span<const RoutedMessage> rest(*messages);
  while (!rest.empty()) {
    Route route;
    route.messages = rest.first(CountAlike(rest));
    rest = rest.subspan(route.messages.size());
    const RoutedMessage& first = route.messages[0];
    while (!left.empty() && EndsOf(left[0]) < EndsOf(first)) {
      left = left.subspan(1);
    }
    const bool has_stops = !left.empty() && EndsOf(left[0]) == EndsOf(first);
    route.stops = left.first(has_stops ? CountAlike(left) : 0);
    const int64_t error_ns = nodes[first.from_node].error_ns + nodes[first.to_node].error_ns;
    (is_departure ? route.after_ns : route.before_ns) += error_ns;
    const RouteNode& node = nodes[is_departure ? first.from_node : first.to_node];
    while (!route.stops.empty() && route.stops[0].at_ns < node.since_ns) {
      route.stops = route.stops.subspan(1);
    }
    if (node.since_ns <= node.until_ns) {
      route.since_ns = node.since_ns + route.before_ns;
      route.until_ns = node.until_ns - route.after_ns;
    }
    if (const std::optional<int64_t> k = FindShift(route); k.has_value()) {
      Assign(route, *k);
    }
  }
}

}  // namespace ferry::tools
