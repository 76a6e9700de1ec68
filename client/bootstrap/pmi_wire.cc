#include "client/bootstrap/pmi_wire.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "client/bootstrap/node_ranks.h"
#include "common/number_text.h"
#include "config/environment.h"

namespace ferry::client {
namespace {

constexpr int kNoLimit = -1;
constexpr uint32_t kMostRanks = 1U << 20;  // as option max_ranks allows

bool IsPlain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("._:/@[]-,").find(letter) != std::string_view::npos;
}

Status Malformed(const std::string& line) {
  return {ErrorCode::kCorrupt,
          "the launcher's PMI server says \"" + line.substr(0, 200) + "\", which is not PMI-1"};
}

StatusOr<UniqueFd> ConnectTo(const std::string& place) {
  const size_t colon = place.rfind(':');
  const std::string host = place.substr(0, colon);
  const std::string port = colon == place.npos ? "" : place.substr(colon + 1);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); error != 0) {
    return Status(ErrorCode::kSystem, "PMI_PORT=" + place + ": " + gai_strerror(error));
  }
  UniqueFd connected;
  int error = 0;
  for (const addrinfo* one = found; one != nullptr && !connected.valid(); one = one->ai_next) {
    UniqueFd fd(socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (fd.valid() && connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) {
      connected = std::move(fd);
    } else {
      error = errno;
    }
  }
  freeaddrinfo(found);
  return connected.valid() ? StatusOr<UniqueFd>(std::move(connected))
                           : StatusFromErrno(error, "connect to PMI_PORT=" + place);
}

}  // namespace

// ---- Texts --------------------------------------------------------------------------------------

std::string ToPmiText(std::string_view words) {
  std::string text;
  for (const char letter : words) {
    if (IsPlain(letter)) {
      text += letter;
    } else {
      std::array<char, 4> code{};
      snprintf(code.data(), code.size(), "%%%02x", static_cast<unsigned char>(letter));
      text += code.data();
    }
  }
  return text;
}

StatusOr<std::string> FromPmiText(std::string_view text) {
  std::string words;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      words += text[i];
      continue;
    }
    const std::optional<uint8_t> code =
        i + 2 < text.size() ? NumberIn<uint8_t>(text.substr(i + 1, 2), 16) : std::nullopt;
    if (!code) {
      return Malformed(std::string(text));
    }
    words += static_cast<char>(*code);
    i += 2;
  }
  return words;
}

StatusOr<std::vector<uint32_t>> ParseProcessMapping(std::string_view text, uint32_t rank,
                                                    uint32_t size) {
  struct Block {
    uint32_t first_node, nodes, ranks;
  };
  const Status malformed(ErrorCode::kCorrupt, std::string(kPmiMapping) + " is \"" +
                                                  std::string(text.substr(0, 200)) +
                                                  "\", which is no vector of blocks");
  constexpr std::string_view kStart = "(vector";
  std::vector<Block> blocks;
  if (!text.starts_with(kStart) || !text.ends_with(")")) {
    return malformed;
  }
  std::string_view rest = text.substr(kStart.size(), text.size() - kStart.size() - 1);
  while (!rest.empty()) {
    const size_t end = rest.find(')');
    std::array<std::optional<uint32_t>, 3> numbers;
    if (!rest.starts_with(",(") || end == rest.npos) {
      return malformed;
    }
    std::string_view block = rest.substr(2, end - 2);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t comma = i + 1 < numbers.size() ? block.find(',') : block.size();
      numbers[i] = NumberIn<uint32_t>(block.substr(0, comma));
      if (comma == block.npos || !numbers[i].has_value()) {
        return malformed;
      }
      block.remove_prefix(std::min(comma + 1, block.size()));
    }
    if (*numbers[1] == 0 || *numbers[2] == 0) {
      return malformed;
    }
    blocks.push_back({*numbers[0], *numbers[1], *numbers[2]});
    rest.remove_prefix(end + 1);
  }
  if (blocks.empty()) {
    return malformed;
  }
  std::vector<uint32_t> node_of_rank;
  while (node_of_rank.size() < size) {
    for (const Block& block : blocks) {
      for (uint32_t node = 0; node < block.nodes && node_of_rank.size() < size; ++node) {
        node_of_rank.insert(node_of_rank.end(),
                            std::min<size_t>(block.ranks, size - node_of_rank.size()),
                            block.first_node + node);
      }
    }
  }
  std::vector<uint32_t> ranks;
  for (uint32_t other = 0; other < size; ++other) {
    if (node_of_rank[other] == node_of_rank[rank]) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

StatusOr<std::vector<uint32_t>> FindNode(const std::optional<std::string>& mapping,
                                         Exchange* exchange) {
  // The mapping takes memory for each of them.
  if (exchange->size() > kMostRanks) {
    return Status(ErrorCode::kLimitExceeded,
                  "the launcher says that the job has " + std::to_string(exchange->size()) +
                      " ranks; one may have " + std::to_string(kMostRanks));
  }
  return mapping.has_value() && !mapping->empty()
             ? ParseProcessMapping(*mapping, exchange->rank(), exchange->size())
             : FindRanksOfNode(exchange);
}

std::string PmiKeyOf(uint32_t rank, const std::string& name) {
  return name + "." + std::to_string(rank);
}

// ---- Start and end ------------------------------------------------------------------------------

bool PmiWire::IsAround(const char* const* environment) {
  const auto has = [&](const char* name) {
    return config::FindVariable(environment, name).has_value();
  };
  return (has("PMI_FD") && has("PMI_RANK") && has("PMI_SIZE")) ||
         (has("PMI_PORT") && has("PMI_ID"));
}

bool PmiWire::HasDescriptor(const char* const* environment) {
  const auto text = config::FindVariable(environment, "PMI_FD");
  const auto fd = text ? NumberIn<int>(*text) : std::nullopt;
  return fd && fcntl(*fd, F_GETFD) >= 0;
}

StatusOr<std::unique_ptr<PmiWire>> PmiWire::Open(const char* const* environment,
                                                 uint64_t timeout_ms) {
  std::unique_ptr<PmiWire> wire(new PmiWire(timeout_ms));
  FERRY_RETURN_IF_ERROR(wire->Connect(environment));
  FERRY_RETURN_IF_ERROR(wire->Enter());
  const StatusOr<std::string> mapping = wire->GetValue(kPmiMapping);
  StatusOr<std::vector<uint32_t>> ranks =
      FindNode(mapping.ok() ? std::optional(*mapping) : std::nullopt, wire.get());
  FERRY_RETURN_IF_ERROR(ranks.status());
  wire->local_ranks_ = std::move(*ranks);
  return wire;
}

PmiWire::~PmiWire() {
  if (entered_) {
    (void)Ask("cmd=finalize", "finalize_ack").ok();
  }
}

Status PmiWire::Connect(const char* const* environment) {
  const auto text = [&](const char* name) {
    return std::string(config::FindVariable(environment, name).value_or(""));
  };
  const auto number = [&](const char* name, uint32_t* to) -> Status {
    const std::optional<uint32_t> found = NumberIn<uint32_t>(text(name));
    *to = found.value_or(0);
    return found.has_value() ? Status()
                             : Status(ErrorCode::kConfiguration,
                                      std::string(name) + "=" + text(name) + " is no number");
  };
  uint32_t fd = 0;
  if (config::FindVariable(environment, "PMI_FD").has_value()) {
    FERRY_RETURN_IF_ERROR(number("PMI_RANK", &rank_));
    FERRY_RETURN_IF_ERROR(number("PMI_SIZE", &size_));
    FERRY_RETURN_IF_ERROR(number("PMI_FD", &fd));
    // Programs that this one starts are not to speak in its name.
    if (fcntl(static_cast<int>(fd), F_SETFD, FD_CLOEXEC) != 0) {
      return StatusFromErrno(errno, "the launcher's connection, PMI_FD=" + text("PMI_FD"));
    }
    socket_.Reset(static_cast<int>(fd));
    return {};
  }
  uint32_t id = 0;
  FERRY_RETURN_IF_ERROR(number("PMI_ID", &id));
  StatusOr<UniqueFd> connected = ConnectTo(text("PMI_PORT"));
  FERRY_RETURN_IF_ERROR(connected.status());
  socket_ = std::move(*connected);
  FERRY_RETURN_IF_ERROR(Ask("cmd=initack pmiid=" + std::to_string(id), "initack").status());
  for (const auto& [name, to] : {std::pair("size", &size_), std::pair("rank", &rank_)}) {
    const StatusOr<PmiFields> said = Receive("set", static_cast<int>(timeout_ms_));
    FERRY_RETURN_IF_ERROR(said.status());
    const auto found = said->find(name);
    const auto value = found == said->end() ? std::nullopt : NumberIn<uint32_t>(found->second);
    if (!value.has_value()) {
      return Malformed("cmd=set without " + std::string(name));
    }
    *to = *value;
  }
  return Receive("set", static_cast<int>(timeout_ms_)).status();  // debug
}

Status PmiWire::Enter() {
  FERRY_RETURN_IF_ERROR(
      Ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init").status());
  entered_ = true;
  const StatusOr<uint32_t> most = AskNumber("cmd=get_maxes", "maxes", "vallen_max");
  FERRY_RETURN_IF_ERROR(most.status());
  most_value_bytes_ = *most;
  const StatusOr<PmiFields> names = Ask("cmd=get_my_kvsname", "my_kvsname");
  FERRY_RETURN_IF_ERROR(names.status());
  const auto name = names->find("kvsname");
  if (rank_ >= size_ || name == names->end()) {
    return {ErrorCode::kCorrupt, "the launcher's PMI server names rank " + std::to_string(rank_) +
                                     " of " + std::to_string(size_) +
                                     (name == names->end() ? ", and no kvsname" : "")};
  }
  names_ = name->second;
  // Neither is needed.
  if (const auto app = AskNumber("cmd=get_appnum", "appnum", "appnum"); app.ok()) {
    app_ = *app;
  }
  if (const auto room = AskNumber("cmd=get_universe_size", "universe_size", "size"); room.ok()) {
    universe_size_ = *room;
  }
  return {};
}

// ---- Requests -----------------------------------------------------------------------------------

Status PmiWire::Send(const std::string& line) const {
  const std::string whole = line + "\n";
  size_t sent = 0;
  while (sent < whole.size()) {
    const ssize_t size =
        send(socket_.get(), whole.data() + sent, whole.size() - sent, MSG_NOSIGNAL);
    if (size < 0 && errno != EINTR) {
      return StatusFromErrno(errno, "the launcher's PMI server cannot be reached");
    }
    sent += size > 0 ? static_cast<size_t>(size) : 0;
  }
  return {};
}

StatusOr<std::string> PmiWire::ReceiveLine(int timeout_ms) {
  std::optional<std::string> line;
  while (!(line = TakePmiLine(&input_)).has_value()) {
    if (input_.size() > kMostPmiLineBytes) {
      return Malformed(input_);
    }
    pollfd waiting{socket_.get(), POLLIN, 0};
    const int ready = poll(&waiting, 1, timeout_ms);
    if (ready == 0) {
      return Status(ErrorCode::kTimeout, "the launcher's PMI server has not answered for " +
                                             std::to_string(timeout_ms) + " ms");
    }
    std::array<char, 4096> bytes;
    const ssize_t size = ready < 0 ? -1 : read(socket_.get(), bytes.data(), bytes.size());
    if (size == 0) {
      return Status(ErrorCode::kSystem, "the launcher's PMI server has hung up");
    }
    if (size < 0 && errno != EINTR && errno != EAGAIN) {
      return StatusFromErrno(errno, "the launcher's PMI server");
    }
    input_.append(bytes.data(), size > 0 ? static_cast<size_t>(size) : 0);
  }
  return std::move(*line);
}

StatusOr<PmiFields> PmiWire::Receive(std::string_view answer, int timeout_ms) {
  const StatusOr<std::string> line = ReceiveLine(timeout_ms);
  FERRY_RETURN_IF_ERROR(line.status());
  PmiFields fields = ReadPmiLine(*line);
  if (const auto command = fields.find("cmd");
      command == fields.end() || command->second != answer) {
    return Malformed(*line);
  }
  if (const auto code = fields.find("rc"); code != fields.end() && code->second != "0") {
    return Status(ErrorCode::kSystem,
                  "the launcher's PMI server refuses: \"" + line->substr(0, 200) + "\"");
  }
  return fields;
}

StatusOr<PmiFields> PmiWire::Ask(const std::string& line, std::string_view answer) {
  FERRY_RETURN_IF_ERROR(Send(line));
  return Receive(answer, static_cast<int>(timeout_ms_));
}

StatusOr<uint32_t> PmiWire::AskNumber(const std::string& line, std::string_view answer,
                                      std::string_view field) {
  const StatusOr<PmiFields> fields = Ask(line, answer);
  FERRY_RETURN_IF_ERROR(fields.status());
  const auto found = fields->find(field);
  const auto number = found == fields->end() ? std::nullopt : NumberIn<uint32_t>(found->second);
  return number.has_value()
             ? StatusOr<uint32_t>(*number)
             : Malformed("cmd=" + std::string(answer) + " without " + std::string(field));
}

StatusOr<std::string> PmiWire::GetValue(const std::string& key) {
  const StatusOr<PmiFields> fields = Ask("cmd=get kvsname=" + names_ + " key=" + key, "get_result");
  FERRY_RETURN_IF_ERROR(fields.status());
  const auto value = fields->find("value");
  return value == fields->end() ? StatusOr<std::string>(Status(ErrorCode::kNotFound, key))
                                : value->second;
}

Status PmiWire::Put(const std::string& name, const std::string& words) {
  const std::string text = ToPmiText(words);
  if (text.size() >= most_value_bytes_) {
    return {ErrorCode::kLimitExceeded, name + " has " + std::to_string(text.size()) +
                                           " bytes; the launcher's PMI server takes fewer than " +
                                           std::to_string(most_value_bytes_)};
  }
  return Ask("cmd=put kvsname=" + names_ + " key=" + PmiKeyOf(rank_, name) + " value=" + text,
             "put_result")
      .status();
}

Status PmiWire::Fence() {
  FERRY_RETURN_IF_ERROR(Send("cmd=barrier_in"));
  return Receive("barrier_out", kNoLimit).status();
}

StatusOr<std::string> PmiWire::Get(uint32_t rank, const std::string& name) {
  const StatusOr<std::string> text = GetValue(PmiKeyOf(rank, name));
  FERRY_RETURN_IF_ERROR(text.status());
  return FromPmiText(*text);
}

void PmiWire::Abort(int exit_code, const std::string& /*text*/) {
  (void)Send("cmd=abort exitcode=" + std::to_string(exit_code)).ok();
}

}  // namespace ferry::client
