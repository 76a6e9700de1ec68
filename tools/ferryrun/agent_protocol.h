// The protocol between ferryrun and its agents on other hosts, over an agent's standard streams.
//
// An agent is also a ferryrun. It starts a daemon and ranks on its host for the ferryrun that the
// user called, and ends them when that one falls silent. It first writes the line kGreeting, before
// which a login may have printed anything; from there on both ends send frames: FrameHeader, then a
// payload. Numbers are little-endian, as on every machine that Ferry runs on.
//
// Pure data and functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/status.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {

// The flag that makes a ferryrun an agent.
inline constexpr char kAgentFlag[] = "--agent";

enum class FrameKind : uint32_t {
  // To the agent.
  kSetUp = 1,      // CBOR: what the user asked for. Answer: kFound
  kServe = 2,      // CBOR: which daemon to use. Answer: kServing
  kCreateJob = 3,  // control.CreateJobRequest. Answer: kCreated
  kStartRank = 4,  // CBOR: RankCommand. Answer: kStarted
  kSignal = 5,     // int32: to all ranks there
  kInput = 6,      // bytes for the standard input of a rank; none: its end. Answer: kTaken
  kStop = 7,       // ends what is left. Answer: kStopped, then the stream ends
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
  kAborted = 25,      // int32: a rank has aborted the job with this exit code
  kStopped = 26,      // a sentence, if the daemon did not stop as it should
};

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
  // Whether a greeting comes first.
  explicit FrameReader(bool greeting) : greeting_(greeting) {}

  void Feed(std::string_view bytes) { waiting_.append(bytes); }
  // The next frame, or nothing yet. kVersionMismatch, kCorrupt: nothing more can be read.
  StatusOr<std::optional<Frame>> Next();
  // The text before the greeting, for people.
  const std::string& preamble() const { return preamble_; }

 private:
  Status TakeGreeting();

  bool greeting_;
  std::string waiting_;
  std::string preamble_;
};

// Payloads of one number, and of how a rank ended.
std::string NumberPayload(int32_t number);
int32_t ReadNumber(const Frame& frame);
std::string EndPayload(const ProcessEnd& end);
ProcessEnd ReadEnd(const Frame& frame);
std::string FailedPayload(const Status& status);
Status ReadFailed(const Frame& frame);

}  // namespace ferry::tools
