// The protocol between ferryrun and its agents on other hosts, over an agent's standard streams.
//
// An agent is also a ferryrun. It starts a daemon and ranks on its host for the ferryrun that the
// user called, and ends them when that one falls silent. It first writes the line kGreeting, before
// which a login may have printed anything; from there on both ends send frames: FrameHeader, then a
// payload. Numbers are little-endian, as on every machine that Ferry runs on.
//
// Pure data and functions; any thread. Reading a message fails with kCorrupt for data that the
// other end would never write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/rank_notice.h"
#include "common/status.h"
#include "tools/ferryrun/cpu_places.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/rank_terminal.h"

namespace ferry::tools {

// The flags that make a ferryrun an agent, and a relay (relay.h).
inline constexpr char kAgentFlag[] = "--agent";
inline constexpr char kRelayFlag[] = "--relay";

enum class FrameKind : uint32_t {
  // To the agent.
  kSetUp = 1,      // CBOR: what the user asked for. Answer: kFound
  kServe = 2,      // CBOR: which daemon to use. Answer: kServing
  kCreateJob = 3,  // uint32: the node; of the job that kJob has told. Answer: kCreated
  kStartRank = 4,  // CBOR: AgentRank. Answer: kStarted
  kSignal = 5,     // int32: to all ranks there
  kInput = 6,      // bytes for the standard input of a rank; none: its end. Answer: kTaken
  kStop = 7,  // text of RankExits, for the daemon there; or nothing: ends what is left. Answer:
              // kStopped, then the stream ends
  kAskAbsent = 8,  // uint32: a program of those that follow each other, then a sentence, how a rank
                   // there has ended: did it attach to that program? Answer: kAbsent if not
  kJob = 9,        // CBOR: AgentJob, the same for all agents. No answer
  kWindow = 10,    // TerminalSize, as two uint16: the new size of ranks' terminals. No answer
  kAskWhy = 11,    // text: a job; what do its ranks there wait for? Answer: kWhy
  kAskProfile = 12,  // control.JobProfileRequest, and in the place of the rank a number: what have
                     // measured ranks there written? Answers: kProfile, then kProfileEnd, with that
                     // number
  // From the agent. Each answer may be kFailed instead.
  kFound = 16,    // CBOR: what is there
  kServing = 17,  // CBOR: the daemon's places
  kCreated = 18,
  kStarted = 19,      // int32: pid
  kFailed = 20,       // int32 ErrorCode, then a sentence
  kOutput = 21,       // one byte, 1 or 2: the stream; then bytes
  kEnded = 22,        // of a rank: RankEndPayload
  kTaken = 23,        // uint32: so many bytes of input have gone to the rank
  kDaemonEnded = 24,  // a sentence: a private daemon has ended by itself
  kNotice = 25,       // RankNotice
  kStopped = 26,      // a sentence, if the daemon did not stop as it should
  kAbsent = 27,       // a rank that has ended never attached to the program
  kWhy = 28,          // text: what `ferryctl why` says
  kDeadlock = 29,     // a sentence: ranks wait for each other, for ever
  kProfile = 30,      // control.JobProfilePart
  kProfileEnd = 31,   // as kFailed; nothing: all has been said
  // Either way.
  kExchange = 64,  // CBOR: ExchangeMessage
  // To a relay, and from it: bytes on their way to agents, and from them. `rank` is the channel.
  kTree = 128,           // CBOR: RelayTree; the first frame, and the only one of its kind
  kChannelInput = 129,   // bytes for the agent
  kChannelClose = 130,   // there will be no more
  kShared = 131,         // bytes for several agents; in the place of the channel, a number for them
  kChannelShared = 132,  // uint32: such a number; its bytes are the channel's next input
  kChannelOutput = 144,  // bytes of the agent
  kChannelErrors = 145,  // bytes that its launcher has written to standard error
  kChannelEnd = 146,     // a sentence: how its launcher ended; the channel's last frame
  kChannelRoom = 160,    // uint32, either way: so many bytes that came by the channel have gone on
};

// The most bytes that may be under way in one direction of a channel. The sender waits for
// kChannelRoom then, so that an agent that takes nothing, or whose output is not taken, does not
// hold up the others of its connection.
inline constexpr size_t kChannelWindowBytes = 256 << 10;

struct FrameHeader {
  uint32_t size;  // of the payload, in bytes
  uint32_t kind;
  uint32_t rank;
};

struct Frame {
  FrameKind kind{};
  uint32_t rank = 0;
  std::string payload;
};

// "FERRYRUN-AGENT 1.2.0": versions must be the same.
std::string Greeting();

void AppendFrame(FrameKind kind, uint32_t rank, std::string_view payload, std::string* out);

// Takes frames out of a stream that arrives in pieces.
class FrameReader {
 public:
  // `greeting`: the stream begins with a greeting.
  explicit FrameReader(bool greeting) : greeting_(greeting) {}

  void Feed(std::string_view bytes) { waiting_.append(bytes); }
  // Returns the next frame, or nothing if it has not come whole. kVersionMismatch, kCorrupt:
  // nothing more can be read.
  StatusOr<std::optional<Frame>> Next();
  // Returns the text before the greeting, for people.
  const std::string& preamble() const { return preamble_; }
  // Returns true if the greeting has come, or the stream has none.
  bool has_greeting() const { return !greeting_; }

 private:
  Status TakeGreeting();

  bool greeting_;
  std::string waiting_;
  std::string preamble_;
};

// Payloads, and their readers: a number, the end of a rank, a notice, a size, a failure.
std::string NumberPayload(int32_t number);
int32_t ReadNumber(const Frame& frame);
std::string EndPayload(const ProcessEnd& end);
ProcessEnd ReadEnd(const Frame& frame);
std::string NoticePayload(const RankNotice& notice);
std::optional<RankNotice> ReadNotice(const Frame& frame);  // nothing: it is none
std::string WindowPayload(const TerminalSize& size);
TerminalSize ReadWindow(const Frame& frame);
std::string FailedPayload(const Status& status);
Status ReadFailed(const Frame& frame);

// ---- Messages that hold more than a number or a sentence: CBOR (RFC 8949) ----

// kSetUp.
struct AgentSetUp {
  std::string host;                  // as the user wrote it
  std::string network;               // --network
  std::vector<std::string> options;  // "FERRY_NAME=value"
  bool names_run_directory = false;
  bool private_daemon = false;  // do not look for a running daemon
  bool needs_address = false;   // other hosts take part
  std::string ferryd;           // empty: beside ferryrun
  uint64_t grace_ms = 0;
  uint64_t deadlock_check_s = 0;  // between looks for deadlocks; 0: none
};
std::string ToText(const AgentSetUp& message);
StatusOr<AgentSetUp> ReadSetUp(const std::string& text);

// kFound.
struct AgentFound {
  std::string control_address;  // of the daemon that runs there; empty: none does
  std::string address;          // of the host
};
std::string ToText(const AgentFound& message);
StatusOr<AgentFound> ReadFound(const std::string& text);

// kServe.
struct AgentServe {
  bool private_daemon = false;
  uint32_t node = 0;
  std::string authority;  // PEM; empty: as options say
  std::string authority_key;
  BindingRules binding;  // of the ranks there
  bool tells_bindings = false;
  std::string name_space = {};  // of the job in PMIx
};
std::string ToText(const AgentServe& message);
StatusOr<AgentServe> ReadServe(const std::string& text);

// kServing.
struct AgentServing {
  std::string run_directory;
  std::string control_address;
  // Where each rank there will run, for people who asked.
  std::vector<std::string> bindings = {};
};
std::string ToText(const AgentServing& message);
StatusOr<AgentServing> ReadServing(const std::string& text);

// kJob: what all agents of a job are told alike.
struct AgentJob {
  // One part of the command line: all that its ranks have in common.
  struct Part {
    std::vector<std::string> program;
    std::vector<std::string> variables;  // to be set in the agent's own environment
    std::string directory;               // absolute
    bool must = false;                   // the user named it: without it, nothing runs
  };
  std::string request;                 // control.CreateJobRequest, without node and node_of_rank
  std::vector<uint32_t> node_of_rank;  // travels as common/rank_table.h has it
  std::vector<Part> parts;
  std::optional<TerminalSize> terminal = {};  // of each rank; nothing: it has none
};
std::string ToText(const AgentJob& message);
StatusOr<AgentJob> ReadJob(const std::string& text);

// kStartRank; the rank's number stands in the frame.
struct AgentRank {
  uint32_t part = 0;
  std::vector<std::string> variables;  // to be set besides, which other ranks of the part lack
  bool is_held = false;                // until SIGCONT (SpawnRequest)
};
std::string ToText(const AgentRank& message);
StatusOr<AgentRank> ReadRank(const std::string& text);

// kTree: the hosts that a relay reaches.
struct RelayTree {
  // Consecutive numbers: the relay's own host first, then those that it reaches by agents of its
  // own, or by relays on them.
  uint32_t first_channel = 0;
  std::vector<std::string> hosts;  // as the user wrote them
  std::string launcher;            // options `launcher` and `rsh`
  std::string rsh;
  std::string program;  // ferryrun's path on other hosts
  uint64_t radix = 0;   // how many hosts it reaches itself, at most; not 0
  uint64_t grace_ms = 0;
};
std::string ToText(const RelayTree& message);
// kCorrupt also for a tree without hosts or without a radix, or with a host that is no host's name.
StatusOr<RelayTree> ReadTree(const std::string& text);

// kExchange: a step of the exchange of ranks that do not use Ferry (exchange_hub.h).
struct ExchangeMessage {
  enum class Kind : uint32_t {
    // To ferryrun.
    kPart = 1,    // what a machine's ranks have put before `fence`; or `why` they never enter it
    kMet = 2,     // `rank` has called its server; `data`: its library's path, `why`: the server
    kLeft = 3,    // `rank` has finalized
    kAborts = 4,  // `rank` ends the job; `data`: the exit code, as text
    kFault = 5,   // `why` the job has to end
    kShut = 9,    // a program of `rank` has finalized, and shut the way to its server for good
    // To the agent.
    kWhole = 6,  // all parts, one after the other; or `why` it will never be complete
    // From one agent to another.
    kAsk = 7,     // for what `rank` has put; `fence` numbers the question
    kAnswer = 8,  // `data`, or `why` there is none
  };
  Kind kind{};
  std::string fence = {};
  std::vector<uint32_t> ranks = {};  // that take part in the fence; empty: all
  uint32_t rank = 0;
  uint32_t machine = 0;  // that asks
  std::string data = {};
  std::string why = {};
};
std::string ToText(const ExchangeMessage& message);
StatusOr<ExchangeMessage> ReadExchange(const std::string& text);
// The most that `data` may have: half of what a frame may.
inline constexpr size_t kMostExchangeBytes = 32 << 20;

}  // namespace ferry::tools
