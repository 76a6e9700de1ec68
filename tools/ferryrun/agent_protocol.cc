#include "tools/ferryrun/agent_protocol.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/rank_table.h"
#include "common/version.h"
#include "tools/ferryrun/hosts.h"

namespace ferry::tools {
namespace {

constexpr char kGreetingWord[] = "FERRYRUN-AGENT ";
// More than any frame needs; larger sizes come from a damaged stream.
constexpr uint32_t kMaxPayloadBytes = 64 << 20;
constexpr size_t kMaxPreambleBytes = 1 << 16;
constexpr int kNoUnit = -1;

struct RankEndPayload {
  int32_t exit_code;
  int32_t signal;
  int32_t dumped_core;
};

using Json = nlohmann::json;

// Bytes that are no UTF-8, as paths and variables may have, travel as they are.
std::string Dump(const Json& json) {
  const std::vector<uint8_t> bytes = Json::to_cbor(json);
  return {bytes.begin(), bytes.end()};
}

// Byte strings: JSON's own text would have to be UTF-8.
Json FromText(const std::string& text) { return Json::binary({text.begin(), text.end()}); }
std::string TextFrom(const Json& json) {
  const Json::binary_t& bytes = json.get_binary();
  return {bytes.begin(), bytes.end()};
}
Json FromTexts(const std::vector<std::string>& texts) {
  Json json = Json::array();
  for (const std::string& text : texts) {
    json.push_back(FromText(text));
  }
  return json;
}
std::vector<std::string> TextsFrom(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& one : json) {
    texts.push_back(TextFrom(one));
  }
  return texts;
}

Json FromRules(const BindingRules& rules) {
  const Mapping& mapping = rules.mapping;
  return {{"binding", static_cast<int>(rules.binding)},
          {"count", mapping.count},
          {"oversubscribes", mapping.oversubscribes},
          {"unit", mapping.unit ? static_cast<int>(*mapping.unit) : kNoUnit},
          {"per_unit", mapping.per_unit},
          {"width", mapping.width},
          {"threads_are_cpus", mapping.threads_are_cpus},
          {"order", static_cast<int>(mapping.order)},
          {"order_unit", static_cast<int>(mapping.order_unit)},
          {"threads", rules.threads},
          {"slots", rules.slots}};
}
// Not how ranks are dealt out to nodes, which is done.
BindingRules RulesFrom(const Json& json) {
  const int unit = json.at("unit");
  Mapping mapping{.count = json.at("count"),
                  .oversubscribes = json.at("oversubscribes"),
                  .per_unit = json.at("per_unit"),
                  .width = json.at("width"),
                  .threads_are_cpus = json.at("threads_are_cpus"),
                  .order = static_cast<Mapping::Order>(json.at("order").get<int>()),
                  .order_unit = static_cast<Unit>(json.at("order_unit").get<int>())};
  if (unit != kNoUnit) {
    mapping.unit = static_cast<Unit>(unit);
  }
  return {.binding = static_cast<Binding>(json.at("binding").get<int>()),
          .mapping = mapping,
          .threads = json.at("threads"),
          .slots = json.at("slots")};
}

// Reads with `read`, which throws where a field is missing or of another type.
template <typename Message, typename Read>
StatusOr<Message> Parse(const std::string& text, Read read) {
  try {
    return read(Json::from_cbor(text));
  } catch (const Json::exception& error) {
    return Status(ErrorCode::kCorrupt, std::string("a message between ferryruns: ") + error.what());
  }
}

}  // namespace

std::string Greeting() {
  return std::string(kGreetingWord) + kFerryVersion + " " + std::to_string(kLayoutVersion) + "." +
         std::to_string(kProtocolVersion) + "\n";
}

void AppendFrame(FrameKind kind, uint32_t rank, std::string_view payload, std::string* out) {
  const FrameHeader header{static_cast<uint32_t>(payload.size()), static_cast<uint32_t>(kind),
                           rank};
  out->append(reinterpret_cast<const char*>(&header), sizeof(header)).append(payload);
}

Status FrameReader::TakeGreeting() {
  while (greeting_) {
    const size_t end = waiting_.find('\n');
    if (end == waiting_.npos) {
      return {};
    }
    const std::string line = waiting_.substr(0, end + 1);
    waiting_.erase(0, end + 1);
    if (line == Greeting()) {
      greeting_ = false;
    } else if (line.starts_with(kGreetingWord)) {
      return {ErrorCode::kVersionMismatch,
              "the ferryrun there is of another release: it says " +
                  line.substr(std::strlen(kGreetingWord),
                              line.size() - std::strlen(kGreetingWord) - 1) +
                  ", this one is " +
                  Greeting().substr(std::strlen(kGreetingWord),
                                    Greeting().size() - std::strlen(kGreetingWord) - 1)};
    } else if (preamble_.size() < kMaxPreambleBytes) {
      preamble_ += line;
    }
  }
  return {};
}

StatusOr<std::optional<Frame>> FrameReader::Next() {
  FERRY_RETURN_IF_ERROR(TakeGreeting());
  FrameHeader header{};
  if (greeting_ || waiting_.size() < sizeof(header)) {
    return std::optional<Frame>();
  }
  std::memcpy(&header, waiting_.data(), sizeof(header));
  if (header.size > kMaxPayloadBytes) {
    return Status(ErrorCode::kCorrupt, "a frame of " + std::to_string(header.size) + " bytes");
  }
  if (waiting_.size() < sizeof(header) + header.size) {
    return std::optional<Frame>();
  }
  Frame frame{static_cast<FrameKind>(header.kind), header.rank,
              waiting_.substr(sizeof(header), header.size)};
  waiting_.erase(0, sizeof(header) + header.size);
  return std::optional(std::move(frame));
}

std::string NumberPayload(int32_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

int32_t ReadNumber(const Frame& frame) {
  int32_t number = 0;
  std::memcpy(&number, frame.payload.data(), std::min(frame.payload.size(), sizeof(number)));
  return number;
}

std::string EndPayload(const ProcessEnd& end) {
  const RankEndPayload payload{end.exit_code, end.signal, end.dumped_core ? 1 : 0};
  return {reinterpret_cast<const char*>(&payload), sizeof(payload)};
}

ProcessEnd ReadEnd(const Frame& frame) {
  RankEndPayload payload{};
  std::memcpy(&payload, frame.payload.data(), std::min(frame.payload.size(), sizeof(payload)));
  return {payload.exit_code, payload.signal, payload.dumped_core != 0};
}

std::string NoticePayload(const RankNotice& notice) {
  return {reinterpret_cast<const char*>(&notice), sizeof(notice)};
}

std::optional<RankNotice> ReadNotice(const Frame& frame) {
  RankNotice notice{};
  if (frame.payload.size() != sizeof(notice)) {
    return std::nullopt;
  }
  std::memcpy(&notice, frame.payload.data(), sizeof(notice));
  notice.entry[sizeof(notice.entry) - 1] = '\0';
  notice.exit[sizeof(notice.exit) - 1] = '\0';
  notice.rank = frame.rank;
  return notice;
}

std::string WindowPayload(const TerminalSize& size) {
  return {reinterpret_cast<const char*>(&size), sizeof(size)};
}

TerminalSize ReadWindow(const Frame& frame) {
  TerminalSize size;
  std::memcpy(&size, frame.payload.data(), std::min(frame.payload.size(), sizeof(size)));
  return size;
}

std::string FailedPayload(const Status& status) {
  return NumberPayload(static_cast<int32_t>(status.code())) + status.message();
}

Status ReadFailed(const Frame& frame) {
  const auto code = static_cast<ErrorCode>(ReadNumber(frame));
  return {code == ErrorCode::kOk ? ErrorCode::kInternal : code,
          frame.payload.substr(std::min(frame.payload.size(), sizeof(int32_t)))};
}

std::string ToText(const AgentSetUp& message) {
  return Dump({{"host", FromText(message.host)},
               {"network", FromText(message.network)},
               {"options", FromTexts(message.options)},
               {"names_run_directory", message.names_run_directory},
               {"private_daemon", message.private_daemon},
               {"needs_address", message.needs_address},
               {"ferryd", FromText(message.ferryd)},
               {"grace_ms", message.grace_ms},
               {"deadlock_check_s", message.deadlock_check_s}});
}

StatusOr<AgentSetUp> ReadSetUp(const std::string& text) {
  return Parse<AgentSetUp>(text, [](const Json& json) {
    return AgentSetUp{.host = TextFrom(json.at("host")),
                      .network = TextFrom(json.at("network")),
                      .options = TextsFrom(json.at("options")),
                      .names_run_directory = json.at("names_run_directory"),
                      .private_daemon = json.at("private_daemon"),
                      .needs_address = json.at("needs_address"),
                      .ferryd = TextFrom(json.at("ferryd")),
                      .grace_ms = json.at("grace_ms"),
                      .deadlock_check_s = json.at("deadlock_check_s")};
  });
}

std::string ToText(const AgentFound& message) {
  return Dump({{"control_address", message.control_address}, {"address", message.address}});
}

StatusOr<AgentFound> ReadFound(const std::string& text) {
  return Parse<AgentFound>(text, [](const Json& json) {
    return AgentFound{json.at("control_address"), json.at("address")};
  });
}

std::string ToText(const AgentServe& message) {
  return Dump({{"private_daemon", message.private_daemon},
               {"node", message.node},
               {"authority", message.authority},
               {"authority_key", message.authority_key},
               {"binding", FromRules(message.binding)},
               {"tells_bindings", message.tells_bindings},
               {"name_space", message.name_space}});
}

StatusOr<AgentServe> ReadServe(const std::string& text) {
  return Parse<AgentServe>(text, [](const Json& json) {
    return AgentServe{.private_daemon = json.at("private_daemon"),
                      .node = json.at("node"),
                      .authority = json.at("authority"),
                      .authority_key = json.at("authority_key"),
                      .binding = RulesFrom(json.at("binding")),
                      .tells_bindings = json.at("tells_bindings"),
                      .name_space = json.at("name_space")};
  });
}

std::string ToText(const AgentServing& message) {
  return Dump({{"run_directory", FromText(message.run_directory)},
               {"control_address", message.control_address},
               {"bindings", FromTexts(message.bindings)}});
}

StatusOr<AgentServing> ReadServing(const std::string& text) {
  return Parse<AgentServing>(text, [](const Json& json) {
    return AgentServing{TextFrom(json.at("run_directory")), json.at("control_address"),
                        TextsFrom(json.at("bindings"))};
  });
}

std::string ToText(const AgentJob& message) {
  Json parts = Json::array();
  for (const AgentJob::Part& part : message.parts) {
    parts.push_back({{"program", FromTexts(part.program)},
                     {"variables", FromTexts(part.variables)},
                     {"directory", FromText(part.directory)},
                     {"must", part.must}});
  }
  Json terminal = Json::array();  // empty: none
  if (message.terminal) {
    terminal = {message.terminal->rows, message.terminal->columns};
  }
  return Dump({{"request", FromText(message.request)},
               {"terminal", std::move(terminal)},
               {"ranks", message.node_of_rank.size()},
               {"nodes", FromText(PackNodes(message.node_of_rank))},
               {"parts", std::move(parts)}});
}

StatusOr<AgentJob> ReadJob(const std::string& text) {
  std::string nodes;
  uint32_t ranks = 0;
  StatusOr<AgentJob> job = Parse<AgentJob>(text, [&](const Json& json) {
    AgentJob read{.request = TextFrom(json.at("request")), .node_of_rank = {}, .parts = {}};
    if (const Json& terminal = json.at("terminal"); !terminal.empty()) {
      read.terminal = TerminalSize{.rows = terminal.at(0).get<uint16_t>(),
                                   .columns = terminal.at(1).get<uint16_t>()};
    }
    nodes = TextFrom(json.at("nodes"));
    ranks = json.at("ranks");
    for (const Json& part : json.at("parts")) {
      read.parts.push_back({.program = TextsFrom(part.at("program")),
                            .variables = TextsFrom(part.at("variables")),
                            .directory = TextFrom(part.at("directory")),
                            .must = part.at("must")});
    }
    return read;
  });
  FERRY_RETURN_IF_ERROR(job.status());
  StatusOr<std::vector<uint32_t>> node_of_rank = UnpackNodes(nodes, ranks);
  FERRY_RETURN_IF_ERROR(node_of_rank.status());
  job->node_of_rank = std::move(*node_of_rank);
  return job;
}

std::string ToText(const AgentRank& message) {
  return Dump({{"part", message.part},
               {"variables", FromTexts(message.variables)},
               {"held", message.is_held}});
}

StatusOr<AgentRank> ReadRank(const std::string& text) {
  return Parse<AgentRank>(text, [](const Json& json) {
    return AgentRank{.part = json.at("part"),
                     .variables = TextsFrom(json.at("variables")),
                     .is_held = json.at("held")};
  });
}

std::string ToText(const RelayTree& message) {
  return Dump({{"first_channel", message.first_channel},
               {"hosts", FromTexts(message.hosts)},
               {"launcher", message.launcher},
               {"rsh", FromText(message.rsh)},
               {"program", FromText(message.program)},
               {"radix", message.radix},
               {"grace_ms", message.grace_ms}});
}

StatusOr<RelayTree> ReadTree(const std::string& text) {
  StatusOr<RelayTree> tree = Parse<RelayTree>(text, [](const Json& json) {
    return RelayTree{.first_channel = json.at("first_channel"),
                     .hosts = TextsFrom(json.at("hosts")),
                     .launcher = json.at("launcher"),
                     .rsh = TextFrom(json.at("rsh")),
                     .program = TextFrom(json.at("program")),
                     .radix = json.at("radix"),
                     .grace_ms = json.at("grace_ms")};
  });
  if (tree.ok() && (tree->hosts.empty() || tree->radix == 0 ||
                    tree->hosts.size() > UINT32_MAX - tree->first_channel ||
                    !std::all_of(tree->hosts.begin(), tree->hosts.end(), IsHostName))) {
    return Status(ErrorCode::kCorrupt, "a tree of hosts that cannot be");
  }
  return tree;
}

std::string ToText(const ExchangeMessage& message) {
  return Dump({{"kind", static_cast<uint32_t>(message.kind)},
               {"fence", FromText(message.fence)},
               {"ranks", message.ranks},
               {"rank", message.rank},
               {"machine", message.machine},
               {"data", FromText(message.data)},
               {"why", FromText(message.why)}});
}

StatusOr<ExchangeMessage> ReadExchange(const std::string& text) {
  return Parse<ExchangeMessage>(text, [](const Json& json) {
    return ExchangeMessage{.kind = static_cast<ExchangeMessage::Kind>(json.at("kind").get<int>()),
                           .fence = TextFrom(json.at("fence")),
                           .ranks = json.at("ranks"),
                           .rank = json.at("rank"),
                           .machine = json.at("machine"),
                           .data = TextFrom(json.at("data")),
                           .why = TextFrom(json.at("why"))};
  });
}

}  // namespace ferry::tools
