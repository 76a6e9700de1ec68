#include "tools/top/rates.h"

#include <map>
#include <string_view>
#include <utility>

namespace ferry::tools {
namespace {

constexpr std::string_view kPathPrefix = "path_";
constexpr std::string_view kMessagesSuffix = "_messages";
constexpr std::string_view kBytesSuffix = "_bytes";

class Clock {
 public:
  explicit Clock(double seconds) : seconds_(seconds) {}
  double Rate(uint64_t before, uint64_t after) const {
    const uint64_t from = after < before ? 0 : before;  // it began anew
    return seconds_ > 0 ? static_cast<double>(after - from) / seconds_ : 0;
  }

 private:
  const double seconds_;
};

std::string NameOf(const control::SessionStatus& session) {
  return session.job_id() + "." + std::to_string(session.rank());
}

// Counters by scope and name.
using CounterMap = std::map<std::pair<std::string, std::string>, uint64_t>;

CounterMap ByName(const control::CountersReply& reply) {
  CounterMap map;
  for (const control::CounterValue& counter : reply.counters()) {
    map[{counter.scope(), counter.name()}] = counter.value();
  }
  return map;
}

uint64_t Find(const CounterMap& map, const std::string& scope, const std::string& name) {
  const auto found = map.find({scope, name});
  return found == map.end() ? 0 : found->second;
}

void AddSessions(const TopSample& before, const TopSample& after, const Clock& clock,
                 TopRates* rates) {
  std::map<std::string, const control::SessionStatus*> old;
  for (const control::SessionStatus& session : before.sessions.sessions()) {
    // A session of the same name but another process is another rank.
    old[NameOf(session) + "/" + std::to_string(session.pid())] = &session;
  }
  const CounterMap old_counters = ByName(before.counters);
  const CounterMap counters = ByName(after.counters);
  static const control::SessionStatus kNone;
  for (const control::SessionStatus& now : after.sessions.sessions()) {
    const auto found = old.find(NameOf(now) + "/" + std::to_string(now.pid()));
    const control::SessionStatus& then = found == old.end() ? kNone : *found->second;
    const std::string scope = "job " + now.job_id() + " rank " + std::to_string(now.rank());
    const auto counted = [&](const char* name) {
      return clock.Rate(Find(old_counters, scope, name), Find(counters, scope, name));
    };
    SessionRates& session = rates->sessions.emplace_back();
    session.name = NameOf(now);
    session.state = now.state();
    session.sent_messages = clock.Rate(then.messages_sent(), now.messages_sent());
    session.sent_bytes = clock.Rate(then.bytes_sent(), now.bytes_sent());
    session.received_messages = clock.Rate(then.messages_received(), now.messages_received());
    session.received_bytes = clock.Rate(then.bytes_received(), now.bytes_received());
    session.errors = counted("errors");
    session.queued_sends = counted("sends_queued");
    session.queued = now.queued();
    session.credits_out = now.credits_out();
    session.unexpected = now.unexpected();
    session.unfinished = now.requests();
    session.poison = now.poison();
  }
}

void AddPaths(const TopSample& before, const TopSample& after, const Clock& clock,
              TopRates* rates) {
  const CounterMap old = ByName(before.counters);
  std::map<std::string, PathRates> paths;
  for (const control::CounterValue& counter : after.counters.counters()) {
    const std::string_view name = counter.name();
    const bool messages = name.ends_with(kMessagesSuffix);
    if (!name.starts_with(kPathPrefix) || (!messages && !name.ends_with(kBytesSuffix)) ||
        counter.value() == 0) {
      continue;
    }
    const size_t suffix = (messages ? kMessagesSuffix : kBytesSuffix).size();
    const std::string path(
        name.substr(kPathPrefix.size(), name.size() - kPathPrefix.size() - suffix));
    const double rate = clock.Rate(Find(old, counter.scope(), counter.name()), counter.value());
    PathRates& entry = paths[path];
    entry.path = path;
    (messages ? entry.messages : entry.bytes) += rate;
  }
  for (auto& [name, entry] : paths) {
    rates->paths.push_back(std::move(entry));
  }
}

void AddNics(const TopSample& before, const TopSample& after, const Clock& clock, TopRates* rates) {
  static const control::NicStatus kNone;
  for (int i = 0; i < after.nics.nics_size(); ++i) {
    const control::NicStatus& now = after.nics.nics(i);
    const control::NicStatus& then = i < before.nics.nics_size() ? before.nics.nics(i) : kNone;
    rates->nic_sent_messages += clock.Rate(then.messages_sent(), now.messages_sent());
    rates->nic_sent_bytes += clock.Rate(then.bytes_sent(), now.bytes_sent());
    rates->nic_received_messages += clock.Rate(then.messages_received(), now.messages_received());
    rates->nic_received_bytes += clock.Rate(then.bytes_received(), now.bytes_received());
    rates->nic_errors += clock.Rate(then.errors(), now.errors());
    rates->nic_outstanding += now.outstanding();
    rates->staging_blocks += now.staging_blocks();
    rates->staging_busy += now.staging_busy();
    rates->staging_waits += now.staging_waits();
  }
}

}  // namespace

TopRates RatesBetween(const TopSample& before, const TopSample& after) {
  TopRates rates;
  if (after.time_ns > before.time_ns) {
    rates.seconds = static_cast<double>(after.time_ns - before.time_ns) / 1e9;
  }
  const Clock clock(rates.seconds);
  rates.cpu_share = clock.Rate(before.status.cpu_time_us(), after.status.cpu_time_us()) / 1e6;
  AddSessions(before, after, clock, &rates);
  AddPaths(before, after, clock, &rates);
  AddNics(before, after, clock, &rates);
  return rates;
}

}  // namespace ferry::tools
