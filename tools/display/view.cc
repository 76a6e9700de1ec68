#include "tools/display/view.h"

#include <cstdint>
#include <vector>

#include "common/counted.h"
#include "tools/display/table.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

enum class Show { kPlain, kState, kBytes, kKnownBytes, kTime, kAgo, kNothingIfNegative };

// One field of a message: its name in JSON (null: not there), its column's title (null: none).
template <typename Message>
struct Field {
  const char* name;
  const char* title;
  ordered_json (*value)(const Message&);
  Show show = Show::kPlain;
};

// The value of the message's own accessor.
#define FERRY_VALUE(Message, accessor) \
  [](const control::Message& message) { return ordered_json(message.accessor()); }

std::string CellText(const ordered_json& value, Show show) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  switch (show) {
    case Show::kPlain:
    case Show::kState:
      break;
    case Show::kBytes:
      return BytesText(value.get<uint64_t>());
    case Show::kKnownBytes:
      return value.get<uint64_t>() == 0 ? "" : BytesText(value.get<uint64_t>());
    case Show::kTime:
      return DurationText(value.get<uint64_t>());
    case Show::kAgo:
      return DurationText(value.get<uint64_t>()) + " ago";
    case Show::kNothingIfNegative:
      return value.get<int64_t>() < 0 ? "" : value.dump();
  }
  return value.dump();
}

template <typename Message, size_t kSize>
ordered_json Object(const Message& message, const Field<Message> (&fields)[kSize]) {
  ordered_json object = ordered_json::object();
  for (const Field<Message>& field : fields) {
    if (field.name != nullptr) {
      object[field.name] = field.value(message);
    }
  }
  return object;
}

// With `keys`, as wide as the terminal at most: see Table::FittedText.
template <typename Message, size_t kSize>
View ListView(const google::protobuf::RepeatedPtrField<Message>& messages,
              const Field<Message> (&fields)[kSize], const char* when_empty,
              const Terminal& terminal, size_t keys = 0) {
  std::vector<Column> columns;
  for (const Field<Message>& field : fields) {
    if (field.title != nullptr) {
      const bool text = field.value(Message()).is_string();
      columns.push_back(
          {field.title, text ? Align::kLeft : Align::kRight, field.show == Show::kState});
    }
  }
  View view = {ordered_json::array(), ""};
  Table table(std::move(columns));
  for (const Message& message : messages) {
    std::vector<std::string> cells;
    for (const Field<Message>& field : fields) {
      if (field.title != nullptr) {
        cells.push_back(CellText(field.value(message), field.show));
      }
    }
    table.AddRow(std::move(cells));
    view.json.push_back(Object(message, fields));
  }
  view.text = table.empty() ? when_empty
              : keys == 0   ? table.Text(terminal)
                            : table.FittedText(terminal, keys);
  return view;
}

constexpr Field<control::JobStatus> kJobFields[] = {
    {"job_id", "JOB", FERRY_VALUE(JobStatus, job_id)},
    {"state", "STATE", FERRY_VALUE(JobStatus, state), Show::kState},
    {"size", "RANKS", FERRY_VALUE(JobStatus, size)},
    {"local", "HERE", FERRY_VALUE(JobStatus, local)},
    {"joined", "JOINED", FERRY_VALUE(JobStatus, joined)},
    {"uid", nullptr, FERRY_VALUE(JobStatus, uid)},
    {"user", "USER", FERRY_VALUE(JobStatus, user)},
    {"name", nullptr, FERRY_VALUE(JobStatus, name)},
    {"program", "PROGRAM", FERRY_VALUE(JobStatus, program)},
    {"age_ms", "AGE", FERRY_VALUE(JobStatus, age_ms), Show::kTime},
    {"slurm_id", "SLURM", FERRY_VALUE(JobStatus, slurm_id)},
};

using UserValue = uint64_t (control::UserStatus::*)() const;

// "3 of 64", or only the number in use where there is no limit.
template <UserValue used, UserValue limit>
ordered_json UsedOfLimit(const control::UserStatus& user) {
  const uint64_t most = (user.*limit)();
  return std::to_string((user.*used)()) + (most == 0 ? "" : " of " + std::to_string(most));
}

ordered_json PinnedOfLimit(const control::UserStatus& user) {
  const uint64_t most = user.pinned_bytes_limit();
  return BytesText(user.pinned_bytes()) + (most == 0 ? "" : " of " + BytesText(most));
}

// The limit is of the room that the ranks' tables have.
ordered_json RequestsInRoom(const control::UserStatus& user) {
  const std::string room =
      UsedOfLimit<&control::UserStatus::requests_room, &control::UserStatus::requests_limit>(user);
  return std::to_string(user.requests()) + " (room: " + room + ")";
}

constexpr Field<control::UserStatus> kUserFields[] = {
    {"uid", "USER", FERRY_VALUE(UserStatus, uid)},
    {nullptr, "JOBS", UsedOfLimit<&control::UserStatus::jobs, &control::UserStatus::jobs_limit>},
    {nullptr, "SESSIONS",
     UsedOfLimit<&control::UserStatus::sessions, &control::UserStatus::sessions_limit>},
    {nullptr, "REGIONS",
     UsedOfLimit<&control::UserStatus::regions, &control::UserStatus::regions_limit>},
    {nullptr, "PINNED", PinnedOfLimit},
    {nullptr, "REQUESTS", RequestsInRoom},
    {nullptr, "LINKS", UsedOfLimit<&control::UserStatus::links, &control::UserStatus::links_limit>},
    {nullptr, "NODES", UsedOfLimit<&control::UserStatus::nodes, &control::UserStatus::nodes_limit>},
    {"jobs", nullptr, FERRY_VALUE(UserStatus, jobs)},
    {"jobs_limit", nullptr, FERRY_VALUE(UserStatus, jobs_limit)},
    {"sessions", nullptr, FERRY_VALUE(UserStatus, sessions)},
    {"sessions_limit", nullptr, FERRY_VALUE(UserStatus, sessions_limit)},
    {"regions", nullptr, FERRY_VALUE(UserStatus, regions)},
    {"regions_limit", nullptr, FERRY_VALUE(UserStatus, regions_limit)},
    {"pinned_bytes", nullptr, FERRY_VALUE(UserStatus, pinned_bytes)},
    {"pinned_bytes_limit", nullptr, FERRY_VALUE(UserStatus, pinned_bytes_limit)},
    {"requests", nullptr, FERRY_VALUE(UserStatus, requests)},
    {"requests_room", nullptr, FERRY_VALUE(UserStatus, requests_room)},
    {"requests_limit", nullptr, FERRY_VALUE(UserStatus, requests_limit)},
    {"links", nullptr, FERRY_VALUE(UserStatus, links)},
    {"links_limit", nullptr, FERRY_VALUE(UserStatus, links_limit)},
    {"nodes", nullptr, FERRY_VALUE(UserStatus, nodes)},
    {"nodes_limit", nullptr, FERRY_VALUE(UserStatus, nodes_limit)},
};

constexpr Field<control::RegistrationStatus> kRegistrationFields[] = {
    {"entries", nullptr, FERRY_VALUE(RegistrationStatus, entries)},
    {"entries_limit", nullptr, FERRY_VALUE(RegistrationStatus, entries_limit)},
    {"bytes", nullptr, FERRY_VALUE(RegistrationStatus, bytes)},
    {"bytes_limit", nullptr, FERRY_VALUE(RegistrationStatus, bytes_limit)},
    {"waiting", nullptr, FERRY_VALUE(RegistrationStatus, waiting)},
    {"hits", nullptr, FERRY_VALUE(RegistrationStatus, hits)},
    {"misses", nullptr, FERRY_VALUE(RegistrationStatus, misses)},
    {"evictions", nullptr, FERRY_VALUE(RegistrationStatus, evictions)},
    {"stale", nullptr, FERRY_VALUE(RegistrationStatus, stale)},
    {"refusals", nullptr, FERRY_VALUE(RegistrationStatus, refusals)},
};

// A 64-bit number: other programs keep only 53 bits of a number in JSON.
template <typename Message>
ordered_json Incarnation(const Message& message) {
  return std::to_string(message.incarnation());
}

constexpr Field<control::PeerStatus> kPeerFields[] = {
    {"name", "PEER", FERRY_VALUE(PeerStatus, name)},
    {"control_address", "ADDRESS", FERRY_VALUE(PeerStatus, control_address)},
    {"state", "STATE", FERRY_VALUE(PeerStatus, state), Show::kState},
    {"incarnation", nullptr, Incarnation<control::PeerStatus>},
    {"last_heard_ms", "LAST HEARD", FERRY_VALUE(PeerStatus, last_heard_ms), Show::kAgo},
    {"trouble", "TROUBLE", FERRY_VALUE(PeerStatus, trouble)},
};

constexpr Field<control::NodeIdentity> kNodeFields[] = {
    {"name", nullptr, FERRY_VALUE(NodeIdentity, name)},
    {"incarnation", nullptr, Incarnation<control::NodeIdentity>},
    {"layout_version", nullptr, FERRY_VALUE(NodeIdentity, layout_version)},
    {"protocol_version", nullptr, FERRY_VALUE(NodeIdentity, protocol_version)},
    {"control_address", nullptr, FERRY_VALUE(NodeIdentity, control_address)},
    {"provider", nullptr, FERRY_VALUE(NodeIdentity, provider)},
};

constexpr Field<control::StatusReply> kStatusFields[] = {
    {"pid", nullptr, FERRY_VALUE(StatusReply, pid)},
    {"uptime_ms", nullptr, FERRY_VALUE(StatusReply, uptime_ms)},
    {"state", nullptr, FERRY_VALUE(StatusReply, state)},
    {"run_directory", nullptr, FERRY_VALUE(StatusReply, run_directory)},
    {"sessions", nullptr, FERRY_VALUE(StatusReply, sessions)},
    {"regions", nullptr, FERRY_VALUE(StatusReply, regions)},
    {"region_bytes", nullptr, FERRY_VALUE(StatusReply, region_bytes)},
    {"cpu_time_us", nullptr, FERRY_VALUE(StatusReply, cpu_time_us)},
    {"resident_bytes", nullptr, FERRY_VALUE(StatusReply, resident_bytes)},
    {"metrics_address", nullptr, FERRY_VALUE(StatusReply, metrics_address)},
};

// The form in which other commands take a rank.
template <typename Message>
ordered_json RankName(const Message& message) {
  return message.job_id() + "." + std::to_string(message.rank());
}

ordered_json CallsCell(const control::SessionStatus& session) { return CallsText(session.calls()); }
ordered_json CallsArray(const control::SessionStatus& session) {
  return CallsJson(session.calls());
}

constexpr Field<control::SessionStatus> kSessionFields[] = {
    {nullptr, "RANK", RankName<control::SessionStatus>},
    {"job_id", nullptr, FERRY_VALUE(SessionStatus, job_id)},
    {"rank", nullptr, FERRY_VALUE(SessionStatus, rank)},
    {"pid", "PID", FERRY_VALUE(SessionStatus, pid)},
    {"uid", "UID", FERRY_VALUE(SessionStatus, uid)},
    {"state", "STATE", FERRY_VALUE(SessionStatus, state), Show::kState},
    {"messages_sent", "SENT", FERRY_VALUE(SessionStatus, messages_sent)},
    {"bytes_sent", "OUT", FERRY_VALUE(SessionStatus, bytes_sent), Show::kBytes},
    {"messages_received", "RECEIVED", FERRY_VALUE(SessionStatus, messages_received)},
    {"bytes_received", "IN", FERRY_VALUE(SessionStatus, bytes_received), Show::kBytes},
    {"requests", "REQUESTS", FERRY_VALUE(SessionStatus, requests)},
    {"posted", "POSTED", FERRY_VALUE(SessionStatus, posted)},
    {"unexpected", "UNEXPECTED", FERRY_VALUE(SessionStatus, unexpected)},
    {"queued", "QUEUED", FERRY_VALUE(SessionStatus, queued)},
    {"regions", "REGIONS", FERRY_VALUE(SessionStatus, regions)},
    {"region_bytes", "SIZE", FERRY_VALUE(SessionStatus, region_bytes), Show::kBytes},
    {"cpus", "CPUS", FERRY_VALUE(SessionStatus, cpus)},
    {"nic", "NIC", FERRY_VALUE(SessionStatus, nic)},
    {"nic_distance", "DISTANCE", FERRY_VALUE(SessionStatus, nic_distance),
     Show::kNothingIfNegative},
    {"credits_out", nullptr, FERRY_VALUE(SessionStatus, credits_out)},
    {"poison", nullptr, FERRY_VALUE(SessionStatus, poison)},
    {nullptr, "WAITS IN", CallsCell},
    {"calls", nullptr, CallsArray},
};

constexpr Field<control::CounterValue> kCounterFields[] = {
    {"scope", "SCOPE", FERRY_VALUE(CounterValue, scope)},
    {"name", "COUNTER", FERRY_VALUE(CounterValue, name)},
    {"value", "VALUE", FERRY_VALUE(CounterValue, value)},
    {"unit", "UNIT", FERRY_VALUE(CounterValue, unit)},
    {"help", "MEANING", FERRY_VALUE(CounterValue, help)},
};

constexpr Field<control::LinkStatus> kLinkFields[] = {
    {nullptr, "RANK", RankName<control::LinkStatus>},
    {"job_id", nullptr, FERRY_VALUE(LinkStatus, job_id)},
    {"rank", nullptr, FERRY_VALUE(LinkStatus, rank)},
    {"peer", "PEER", FERRY_VALUE(LinkStatus, peer)},
    {"node", "NODE", FERRY_VALUE(LinkStatus, node)},
    {"state", "LINK", FERRY_VALUE(LinkStatus, state), Show::kState},
    {"for_ms", "FOR", FERRY_VALUE(LinkStatus, for_ms), Show::kTime},
    {"out", "OUT BY", FERRY_VALUE(LinkStatus, out)},
    {"in", "IN BY", FERRY_VALUE(LinkStatus, in)},
    {"daemon_messages", "BY DAEMON", FERRY_VALUE(LinkStatus, daemon_messages)},
    {"daemon_bytes", "SIZE", FERRY_VALUE(LinkStatus, daemon_bytes), Show::kBytes},
    {"why", "WHY NOT", FERRY_VALUE(LinkStatus, why)},
};

constexpr Field<control::LinkTotals> kLinkTotalFields[] = {
    {nullptr, "RANK", RankName<control::LinkTotals>},
    {"job_id", nullptr, FERRY_VALUE(LinkTotals, job_id)},
    {"rank", nullptr, FERRY_VALUE(LinkTotals, rank)},
    {"links", "LINKS", FERRY_VALUE(LinkTotals, links)},
    {"messages_sent", "SENT", FERRY_VALUE(LinkTotals, messages_sent)},
    {"bytes_sent", "OUT", FERRY_VALUE(LinkTotals, bytes_sent), Show::kBytes},
    {"messages_received", "RECEIVED", FERRY_VALUE(LinkTotals, messages_received)},
    {"bytes_received", "IN", FERRY_VALUE(LinkTotals, bytes_received), Show::kBytes},
    {"errors", "ERRORS", FERRY_VALUE(LinkTotals, errors)},
};

constexpr Field<control::NicStatus> kNicFields[] = {
    {"domain", "DOMAIN", FERRY_VALUE(NicStatus, domain)},
    {"provider", "PROVIDER", FERRY_VALUE(NicStatus, provider)},
    {"version", "VERSION", FERRY_VALUE(NicStatus, version)},
    {"fabric", "FABRIC", FERRY_VALUE(NicStatus, fabric)},
    {"address", "ADDRESS", FERRY_VALUE(NicStatus, address)},
    {"messages_sent", "SENT", FERRY_VALUE(NicStatus, messages_sent)},
    {"bytes_sent", "OUT", FERRY_VALUE(NicStatus, bytes_sent), Show::kBytes},
    {"messages_received", "RECEIVED", FERRY_VALUE(NicStatus, messages_received)},
    {"bytes_received", "IN", FERRY_VALUE(NicStatus, bytes_received), Show::kBytes},
    {"reads", "READS", FERRY_VALUE(NicStatus, reads)},
    {"writes", "WRITES", FERRY_VALUE(NicStatus, writes)},
    {"errors", "ERRORS", FERRY_VALUE(NicStatus, errors)},
    {"outstanding", "OUTSTANDING", FERRY_VALUE(NicStatus, outstanding)},
    {"pci", "PCI", FERRY_VALUE(NicStatus, pci)},
    {"numa_node", "NUMA", FERRY_VALUE(NicStatus, numa_node), Show::kNothingIfNegative},
    {"cpus", "CPUS", FERRY_VALUE(NicStatus, cpus)},
    {"progress_cpus", "PROGRESS ON", FERRY_VALUE(NicStatus, progress_cpus)},
    {"staging_node", "STAGING AT", FERRY_VALUE(NicStatus, staging_node), Show::kNothingIfNegative},
    {"staging_blocks", nullptr, FERRY_VALUE(NicStatus, staging_blocks)},
    {"staging_busy", nullptr, FERRY_VALUE(NicStatus, staging_busy)},
    {"staging_waits", nullptr, FERRY_VALUE(NicStatus, staging_waits)},
    {"staging_most_blocks", nullptr, FERRY_VALUE(NicStatus, staging_most_blocks)},
    {"staging_grown", nullptr, FERRY_VALUE(NicStatus, staging_grown)},
    {"staging_shrunk", nullptr, FERRY_VALUE(NicStatus, staging_shrunk)},
    {"deferred_entries", nullptr, FERRY_VALUE(NicStatus, deferred_entries)},
    {"deferred_busy", nullptr, FERRY_VALUE(NicStatus, deferred_busy)},
    {"deferred_operations", nullptr, FERRY_VALUE(NicStatus, deferred_operations)},
    {"deferred_overflows", nullptr, FERRY_VALUE(NicStatus, deferred_overflows)},
    {"deferred_counters", nullptr, FERRY_VALUE(NicStatus, deferred_counters)},
    {"deferred_rings", nullptr, FERRY_VALUE(NicStatus, deferred_rings)},
    {"device_memory", "DEVICE MEMORY", FERRY_VALUE(NicStatus, device_memory)},
    {"device_direct", nullptr, FERRY_VALUE(NicStatus, device_direct)},
    {"device_staged", nullptr, FERRY_VALUE(NicStatus, device_staged)},
    {"device_refusal", nullptr, FERRY_VALUE(NicStatus, device_refusal)},
};

constexpr Field<control::GpuStatus> kGpuFields[] = {
    {"backend", "BACKEND", FERRY_VALUE(GpuStatus, backend)},
    {"device", "DEVICE", FERRY_VALUE(GpuStatus, device)},
    {"name", "NAME", FERRY_VALUE(GpuStatus, name)},
    {"pci", "PCI", FERRY_VALUE(GpuStatus, pci)},
    {"numa_node", "NUMA", FERRY_VALUE(GpuStatus, numa_node), Show::kNothingIfNegative},
    {"cpus", "CPUS", FERRY_VALUE(GpuStatus, cpus)},
    {"nic", "NIC", FERRY_VALUE(GpuStatus, nic)},
    {"nic_distance", "DISTANCE", FERRY_VALUE(GpuStatus, nic_distance), Show::kNothingIfNegative},
    {"total_bytes", "MEMORY", FERRY_VALUE(GpuStatus, total_bytes), Show::kBytes},
    {"free_bytes", "FREE", FERRY_VALUE(GpuStatus, free_bytes), Show::kKnownBytes},
    {"ipc", "IPC", FERRY_VALUE(GpuStatus, ipc)},
    {"dmabuf", "DMABUF", FERRY_VALUE(GpuStatus, dmabuf)},
    {"to_nic", "TO THE NIC", FERRY_VALUE(GpuStatus, to_nic)},
    {"managed", "MANAGED", FERRY_VALUE(GpuStatus, managed)},
    {"stream_words", "STREAM WORDS", FERRY_VALUE(GpuStatus, stream_words)},
    {"kernels", "KERNELS", FERRY_VALUE(GpuStatus, kernels)},
    {"note", "NOTE", FERRY_VALUE(GpuStatus, note)},
};

constexpr Field<control::GpuBackendStatus> kGpuBackendFields[] = {
    {"name", "BACKEND", FERRY_VALUE(GpuBackendStatus, name)},
    {"version", "VERSION", FERRY_VALUE(GpuBackendStatus, version)},
    {"devices", "DEVICES", FERRY_VALUE(GpuBackendStatus, devices)},
    {"in_use", "IN USE", FERRY_VALUE(GpuBackendStatus, in_use)},
    {"note", "NOTE", FERRY_VALUE(GpuBackendStatus, note)},
};

constexpr Field<control::FaultStatus> kFaultFields[] = {
    {"point", "POINT", FERRY_VALUE(FaultStatus, point)},
    {"at", "AT", FERRY_VALUE(FaultStatus, at)},
    {"action", "ACTION", FERRY_VALUE(FaultStatus, action)},
    {"passed", "PASSED", FERRY_VALUE(FaultStatus, passed)},
    {"state", "STATE", FERRY_VALUE(FaultStatus, state), Show::kState},
};

#undef FERRY_VALUE

// One line; ordinary users are not told.
std::string RegistrationText(const control::RegistrationStatus& status) {
  const auto of = [](uint64_t limit, const std::string& text) {
    return limit == 0 ? "" : " of " + text;
  };
  return "registered with the network: " + std::to_string(status.entries()) +
         of(status.entries_limit(), std::to_string(status.entries_limit())) + ", " +
         BytesText(status.bytes()) + of(status.bytes_limit(), BytesText(status.bytes_limit())) +
         "; hits " + std::to_string(status.hits()) + ", misses " + std::to_string(status.misses()) +
         ", evictions " + std::to_string(status.evictions()) +
         (status.refusals() == 0 ? "" : ", refusals " + std::to_string(status.refusals())) +
         (status.device_refusals() == 0
              ? ""
              : ", device memory refused " + std::to_string(status.device_refusals())) +
         (status.waiting() == 0 ? "" : ", waiting " + std::to_string(status.waiting())) + "\n";
}

View Named(const char* name, View list) {
  return {{{name, std::move(list.json)}}, std::move(list.text)};
}

}  // namespace

View MakeView(const control::StatusReply& reply, const Terminal& terminal) {
  const control::NodeIdentity& node = reply.node();
  const View jobs = ListView(reply.jobs(), kJobFields, "", terminal);
  const View peers = ListView(reply.peers(), kPeerFields, "", terminal);
  const View users = ListView(reply.users(), kUserFields, "", terminal);
  View view = {Object(reply, kStatusFields), ""};
  view.json["node"] = Object(node, kNodeFields);
  view.json["jobs"] = jobs.json;
  view.json["peers"] = peers.json;
  view.json["users"] = users.json;
  view.text = "node " + node.name() + ": " + Coloured(reply.state(), terminal) + ", pid " +
              std::to_string(reply.pid()) + ", up " + DurationText(reply.uptime_ms()) + "\n" +
              "run directory " + reply.run_directory() + ", control " + node.control_address() +
              ", provider " + node.provider() + "\n" + Counted(reply.sessions(), "session") + ", " +
              Counted(reply.regions(), "region") + " of " + BytesText(reply.region_bytes()) + "\n";
  if (reply.has_registrations()) {
    view.json["registrations"] = Object(reply.registrations(), kRegistrationFields);
    view.text += RegistrationText(reply.registrations());
  }
  if (!reply.metrics_address().empty()) {
    view.text += "metrics at http://" + reply.metrics_address() + "/metrics\n";
  }
  for (const View* list : {&jobs, &users, &peers}) {
    view.text += list->text.empty() ? "" : "\n" + list->text;
  }
  return view;
}

std::string CallsText(const google::protobuf::RepeatedPtrField<control::RankCall>& calls) {
  std::string text;
  for (const control::RankCall& call : calls) {
    text += (text.empty() ? "" : "; ") + call.phrase();
    text += call.for_ms() == 0 ? "" : " (" + DurationText(call.for_ms()) + ")";
  }
  return text;
}

ordered_json CallsJson(const google::protobuf::RepeatedPtrField<control::RankCall>& calls) {
  ordered_json json = ordered_json::array();
  for (const control::RankCall& call : calls) {
    json.push_back({{"name", call.name()}, {"phrase", call.phrase()}, {"for_ms", call.for_ms()}});
  }
  return json;
}

View MakeView(const control::SessionsReply& reply, const Terminal& terminal) {
  return Named("sessions",
               ListView(reply.sessions(), kSessionFields, "no rank is attached\n", terminal, 1));
}

View MakeView(const control::CountersReply& reply, const Terminal& terminal) {
  return Named("counters", ListView(reply.counters(), kCounterFields,
                                    "all counters are 0 (--all lists them)\n", terminal));
}

View MakeView(const control::LinksReply& reply, const Terminal& terminal) {
  const View totals = ListView(reply.totals(), kLinkTotalFields, "", terminal);
  View view = Named("links", ListView(reply.links(), kLinkFields,
                                      "no pair of ranks of different nodes\n", terminal, 1));
  view.json["totals"] = totals.json;
  view.json["refusal"] = reply.refusal();
  view.text += totals.text.empty() ? "" : "\n" + totals.text;
  if (!reply.refusal().empty()) {
    view.text += "\nno direct links: " + reply.refusal() + "\n";
  }
  return view;
}

View MakeView(const control::NicsReply& reply, const Terminal& terminal) {
  return Named("nics",
               ListView(reply.nics(), kNicFields, "no network interface in use\n", terminal, 1));
}

View MakeView(const control::GpusReply& reply, const Terminal& terminal) {
  const View backends = ListView(reply.backends(), kGpuBackendFields, "", terminal, 1);
  View view = Named("gpus", ListView(reply.gpus(), kGpuFields, "no devices\n", terminal, 2));
  view.json["backends"] = backends.json;
  view.text += backends.text.empty() ? "" : "\n" + backends.text;
  return view;
}

View MakeView(const control::FaultsReply& reply, const Terminal& terminal) {
  return Named("faults", ListView(reply.faults(), kFaultFields, "no faults\n", terminal));
}

}  // namespace ferry::tools
