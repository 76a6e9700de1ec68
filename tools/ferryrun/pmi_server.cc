#include "tools/ferryrun/pmi_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "common/number_text.h"

namespace ferry::tools {
namespace {

using client::FieldOf;
using client::PmiFields;

// As Hydra has them: MPICH cuts its values to such pieces.
constexpr size_t kMostNameBytes = 256;
constexpr size_t kMostKeyBytes = 64;
constexpr size_t kMostValueBytes = 1024;
// MPICH reads lines of 1,024 bytes; a mapping that does not fit is one that it finds out itself.
constexpr size_t kMostMappingBytes = 900;
constexpr size_t kMostPutBytes = 4 << 20;      // by one rank before one barrier
constexpr size_t kMostUnsentBytes = 64 << 10;  // for a client that asks and does not read
constexpr size_t kMostShownBytes = 100;        // of a line in an error

std::string Shown(std::string_view line) {
  std::string text;
  for (const char letter : line.substr(0, kMostShownBytes)) {
    text += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return "\"" + text + (line.size() > kMostShownBytes ? "...\"" : "\"");
}

std::string Refusal(const std::string& answer, const std::string& why) {
  return "cmd=" + answer + " rc=-1 msg=" + why;
}

}  // namespace

PmiServer::PmiServer(const ServedJob& job, EventSet* events, std::vector<ExchangeMessage>* words)
    : job_(job),
      events_(events),
      words_(words),
      mapping_(client::PmiMappingText(job.node_of_rank)) {}

PmiServer::~PmiServer() {
  for (const auto& [rank, client] : clients_) {
    if (client->socket.valid()) {
      events_->Remove(client->socket.get());
    }
  }
}

StatusOr<UniqueFd> PmiServer::Open(uint32_t rank, uint32_t app, uint32_t universe_size) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return StatusFromErrno(errno, "cannot make a socket for PMI");
  }
  UniqueFd theirs(ends[1]);
  auto client = std::make_unique<Client>();
  client->rank = rank;
  client->app = app;
  client->universe_size = universe_size;
  client->socket.Reset(ends[0]);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  events_->Add(ends[0], EPOLLIN,
               [this, of = client.get()](uint32_t events) { OnEvents(of, events); });
  clients_[rank] = std::move(client);
  return theirs;
}

std::string PmiServer::NameOf(uint32_t round) const {
  return "ferry_" + job_.name + "_" + std::to_string(round);
}

std::string PmiServer::FenceOf(uint32_t round, uint32_t barrier) {
  return "pmi " + std::to_string(round) + " " + std::to_string(barrier);
}

// ---- The socket ---------------------------------------------------------------------------------

void PmiServer::OnEvents(Client* client, uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    Send(client);
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
    Receive(client);
  }
}

// A client that asks without reading is not heard until it reads.
void PmiServer::Watch(const Client& client) {
  if (client.socket.valid()) {
    events_->Change(client.socket.get(),
                    (client.output.size() < kMostUnsentBytes ? uint32_t{EPOLLIN} : 0) |
                        (client.output.empty() ? 0 : uint32_t{EPOLLOUT}));
  }
}

void PmiServer::Send(Client* client) {
  while (client->socket.valid() && !client->output.empty()) {
    const ssize_t size = send(client->socket.get(), client->output.data(), client->output.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0 && errno != EAGAIN) {
      client->output.clear();  // it is gone; its end is told by its process
    }
    if (size < 0) {
      break;
    }
    client->output.erase(0, static_cast<size_t>(size));
  }
  Watch(*client);
}

void PmiServer::Receive(Client* client) {
  std::array<char, 16384> bytes;
  const ssize_t size = read(client->socket.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) {
    return;
  }
  if (size <= 0) {  // all its programs have ended, or one has shut the socket for all
    if (!client->inside && client->round > 0) {
      words_->push_back({.kind = ExchangeMessage::Kind::kShut, .rank = client->rank});
    }
    events_->Remove(client->socket.get());
    client->socket.Reset();
    return;
  }
  client->input.append(bytes.data(), static_cast<size_t>(size));
  while (client->socket.valid()) {
    const std::optional<std::string> line = client::TakePmiLine(&client->input);
    if (!line.has_value()) {
      break;
    }
    if (const std::string answer = Obey(client, *line); !answer.empty()) {
      client->output += answer + "\n";
    }
  }
  if (client->socket.valid() && client->input.size() > client::kMostPmiLineBytes) {
    Fault(client, "sends a line of more than " + std::to_string(client::kMostPmiLineBytes) +
                      " bytes by PMI-1");
  }
  Send(client);
}

// Nothing more is heard of the client: whoever breaks the rules once, cannot be trusted to know
// where its next line begins.
void PmiServer::Fault(Client* client, const std::string& why) {
  words_->push_back({.kind = ExchangeMessage::Kind::kFault,
                     .rank = client->rank,
                     .why = "rank " + std::to_string(client->rank) + " " + why});
  if (client->socket.valid()) {
    events_->Remove(client->socket.get());
    client->socket.Reset();
  }
}

// ---- Requests -----------------------------------------------------------------------------------

std::string PmiServer::Obey(Client* client, const std::string& line) {
  if (!client->in_spawn.empty()) {
    if (line != "endcmd") {
      return "";
    }
    client->in_spawn.clear();
    return Refusal("spawn_result", "ferryrun_starts_no_ranks_while_a_job_runs");
  }
  const PmiFields fields = client::ReadPmiLine(line);
  const std::string command = FieldOf(fields, "cmd");
  if (line.find('\0') != line.npos || (command.empty() && FieldOf(fields, "mcmd").empty())) {
    Fault(client, "says " + Shown(line) + " to its PMI server, which is not PMI-1");
    return "";
  }
  if (command == "init") {
    return Init(client, fields);
  }
  if (!client->inside) {
    Fault(client, "says " + Shown(line) + " to its PMI server before \"cmd=init\"");
    return "";
  }
  if (client->waits) {
    Fault(client, "says " + Shown(line) +
                      " to its PMI server while it waits in a barrier; two programs of one slot "
                      "cannot be that rank at the same time");
    return "";
  }
  if (FieldOf(fields, "mcmd") == "spawn") {
    client->in_spawn = line;
    return "";
  }
  return ObeyInside(client, command, fields);
}

std::string PmiServer::ObeyInside(Client* client, const std::string& command,
                                  const PmiFields& fields) {
  if (command == "get") {
    return Get(*client, fields);
  }
  if (command == "put") {
    return Put(client, fields);
  }
  if (command == "barrier_in") {
    return EnterBarrier(client);
  }
  if (command == "get_maxes") {
    return "cmd=maxes kvsname_max=" + std::to_string(kMostNameBytes) +
           " keylen_max=" + std::to_string(kMostKeyBytes) +
           " vallen_max=" + std::to_string(kMostValueBytes);
  }
  if (command == "get_appnum") {
    return "cmd=appnum appnum=" + std::to_string(client->app);
  }
  if (command == "get_my_kvsname") {
    return "cmd=my_kvsname kvsname=" + NameOf(client->round);
  }
  if (command == "get_universe_size") {
    return "cmd=universe_size size=" + std::to_string(client->universe_size);
  }
  if (command == "finalize") {
    return Finalize(client);
  }
  if (command == "abort") {
    const int exit_code = NumberIn<int>(FieldOf(fields, "exitcode")).value_or(1);
    words_->push_back({.kind = ExchangeMessage::Kind::kAborts,
                       .rank = client->rank,
                       .data = std::to_string(exit_code)});
    return "";
  }
  for (const char* name : {"publish_name", "lookup_name", "unpublish_name"}) {
    if (command == name) {
      const std::string word = command.substr(0, command.find('_'));
      return "cmd=" + word + "_result rc=1 info=ferryrun_publishes_no_names";
    }
  }
  Fault(client, "asks its PMI server for " + Shown(command) + ", which is not PMI-1");
  return "";
}

std::string PmiServer::Init(Client* client, const PmiFields& fields) {
  const std::string version = FieldOf(fields, "pmi_version");
  if (version != "1") {
    return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1";
  }
  if (std::exchange(client->inside, true)) {
    Fault(client,
          "says \"cmd=init\" to its PMI server a second time: the program before has not ended in "
          "good order (MPI_Finalize), or two programs of one slot want to be that rank");
    return "";
  }
  client->barriers = 0;
  client->bytes = 0;
  words_->push_back({.kind = ExchangeMessage::Kind::kMet, .rank = client->rank, .why = "PMI-1"});
  return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0";
}

std::string PmiServer::Put(Client* client, const PmiFields& fields) {
  const std::string key = FieldOf(fields, "key");
  const std::string value = FieldOf(fields, "value");
  if (FieldOf(fields, "kvsname") != NameOf(client->round)) {
    return Refusal("put_result", "no_such_kvsname");
  }
  if (key.empty() || key.size() > kMostKeyBytes || value.size() > kMostValueBytes) {
    return Refusal("put_result", "too_long");
  }
  client->bytes += key.size() + value.size() + 2;
  if (client->bytes > kMostPutBytes) {
    return Refusal("put_result", "too_much_before_one_barrier");
  }
  Round& round = rounds_[client->round];
  round.values[key] = value;
  round.put.append(key).push_back('\0');
  round.put.append(value).push_back('\0');
  return "cmd=put_result rc=0 msg=success";
}

std::string PmiServer::Get(const Client& client, const PmiFields& fields) {
  const std::string key = FieldOf(fields, "key");
  if (FieldOf(fields, "kvsname") != NameOf(client.round)) {
    return Refusal("get_result", "no_such_kvsname");
  }
  if (key == client::kPmiMapping && mapping_.size() <= kMostMappingBytes) {
    return "cmd=get_result rc=0 msg=success value=" + mapping_;
  }
  const auto& values = rounds_[client.round].values;
  const auto found = values.find(key);
  return found == values.end() ? Refusal("get_result", "key_not_found") + " value=unknown"
                               : "cmd=get_result rc=0 msg=success value=" + found->second;
}

// ---- Barriers and rounds ------------------------------------------------------------------------

std::string PmiServer::EnterBarrier(Client* client) {
  Round& round = rounds_[client->round];
  client->waits = true;
  client->bytes = 0;
  ++client->barriers;
  ++round.waiting;
  if (round.finalized > 0) {
    FaultOfBarrier(round, client->rank);
  } else if (round.put.size() > kMostExchangeBytes) {
    Fault(client, "and others here have put " + std::to_string(round.put.size()) +
                      " bytes before one barrier of PMI-1; ferryrun passes on " +
                      std::to_string(kMostExchangeBytes) + " at most");
  } else if (round.waiting == clients_.size()) {
    words_->push_back({.kind = ExchangeMessage::Kind::kPart,
                       .fence = FenceOf(client->round, client->barriers),
                       .data = std::exchange(round.put, {})});
  }
  return "";
}

void PmiServer::FaultOfBarrier(const Round& round, uint32_t waiting_rank) {
  words_->push_back({.kind = ExchangeMessage::Kind::kFault,
                     .rank = waiting_rank,
                     .why = "rank " + std::to_string(waiting_rank) +
                            " waits in a barrier of PMI-1 for rank " +
                            std::to_string(round.first_to_end) + ", which has finalized already"});
}

std::string PmiServer::Finalize(Client* client) {
  Round& round = rounds_[client->round];
  if (round.finalized++ == 0) {
    round.first_to_end = client->rank;
    for (const auto& [rank, other] : clients_) {
      if (other->waits && other->round == client->round) {
        FaultOfBarrier(round, rank);
        break;
      }
    }
    // So that ferryrun knows, if ranks of other machines wait for a further barrier.
    words_->push_back(
        {.kind = ExchangeMessage::Kind::kPart,
         .fence = FenceOf(client->round, client->barriers + 1),
         .why = "rank " + std::to_string(client->rank) + ", which has finalized already"});
  }
  if (round.finalized == clients_.size()) {
    rounds_.erase(client->round);
  }
  client->inside = false;
  ++client->round;
  words_->push_back({.kind = ExchangeMessage::Kind::kLeft, .rank = client->rank});
  return "cmd=finalize_ack";
}

void PmiServer::Take(const ExchangeMessage& message) {
  for (auto& [rank, client] : clients_) {
    if (!client->waits || FenceOf(client->round, client->barriers) != message.fence) {
      continue;
    }
    if (!message.why.empty()) {
      return Fault(client.get(), "waits in a barrier of PMI-1 for " + message.why);
    }
    Round& round = rounds_[client->round];
    if (std::exchange(round.waiting, 0) != 0) {  // the first one
      for (std::string_view rest = message.data; !rest.empty();) {
        std::array<std::string_view, 2> texts;
        for (std::string_view& text : texts) {
          const size_t end = std::min(rest.find('\0'), rest.size());
          text = rest.substr(0, end);
          rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        round.values[std::string(texts[0])] = texts[1];
      }
    }
    client->waits = false;
    client->output += "cmd=barrier_out\n";
    Send(client.get());
  }
}

}  // namespace ferry::tools
