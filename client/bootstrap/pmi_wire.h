// The wire protocol of PMI-1, by which launchers tell ranks of each other: Hydra (MPICH, Intel
// MPI), Slurm (srun --mpi=pmi2) and Flux. It is lines of words such as "cmd=get kvsname=K key=A",
// over a descriptor that the launcher left open (PMI_FD), or to its port (PMI_PORT, PMI_ID).
// Source: P. Balaji and others, "PMI: A Scalable Parallel Process-Management Interface" (EuroMPI
// 2010), and MPICH's src/pmi.
//
// Calling thread: one at a time. Open blocks until the launcher answers, at most `timeout_ms` for
// each answer; Put and Get likewise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/bootstrap/exchange.h"
#include "client/bootstrap/pmi_line.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::client {

class PmiWire : public Exchange {
 public:
  // Returns true if a launcher that speaks PMI-1 started this process.
  static bool IsAround(const char* const* environment);

  // Returns true if the launcher's connection (PMI_FD) is open in this process.
  static bool HasDescriptor(const char* const* environment);

  // Connects to the launcher. kSystem: the launcher cannot be reached, has hung up, or refuses a
  // request. kCorrupt: its answer is not PMI. kTimeout: it does not answer.
  static StatusOr<std::unique_ptr<PmiWire>> Open(const char* const* environment,
                                                 uint64_t timeout_ms);
  ~PmiWire() override;  // leaves the launcher in good order

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  const std::vector<uint32_t>& local_ranks() const override { return local_ranks_; }
  std::optional<uint32_t> app() const override { return app_; }
  std::optional<uint32_t> universe_size() const override { return universe_size_; }

  // kLimitExceeded: the words are too long for the launcher.
  Status Put(const std::string& name, const std::string& words) override;
  Status Fence() override;
  StatusOr<std::string> Get(uint32_t rank, const std::string& name) override;
  void Abort(int exit_code, const std::string& text) override;

 private:
  explicit PmiWire(uint64_t timeout_ms) : timeout_ms_(timeout_ms) {}
  Status Connect(const char* const* environment);
  Status Enter();
  Status Send(const std::string& line) const;
  StatusOr<std::string> ReceiveLine(int timeout_ms);
  // Receives an answer, which must be the command `answer`, and returns its fields.
  StatusOr<PmiFields> Receive(std::string_view answer, int timeout_ms);
  StatusOr<PmiFields> Ask(const std::string& line, std::string_view answer);
  StatusOr<uint32_t> AskNumber(const std::string& line, std::string_view answer,
                               std::string_view field);
  StatusOr<std::string> GetValue(const std::string& key);

  const uint64_t timeout_ms_;
  UniqueFd socket_;
  std::string input_;  // has come, and is not a whole line
  bool entered_ = false;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  std::string names_;  // the launcher's name for what the job's ranks put
  size_t most_value_bytes_ = 0;
  std::vector<uint32_t> local_ranks_;
  std::optional<uint32_t> app_;
  std::optional<uint32_t> universe_size_;
};

// Returns the ranks of `rank`'s node by a value of PMI_process_mapping: "(vector,(N,C,R),...)" has
// R ranks on each of the C nodes from N on, and so on, from the beginning again until all `size`
// ranks have a node. kCorrupt for anything else.
StatusOr<std::vector<uint32_t>> ParseProcessMapping(std::string_view text, uint32_t rank,
                                                    uint32_t size);

// Returns the ranks on the node of `exchange`'s rank, in order: by `mapping`, the launcher's value
// of PMI_process_mapping, or, where it has none or an empty one (launchers omit what is too long),
// by what the ranks tell each other. kCorrupt: the mapping's. Blocks for a fence without a mapping.
StatusOr<std::vector<uint32_t>> FindNode(const std::optional<std::string>& mapping,
                                         Exchange* exchange);

// Names what a rank puts: a launcher's keys are those of the whole job.
std::string PmiKeyOf(uint32_t rank, const std::string& name);

// Writes `words` without spaces, line ends, = and ;, which have a meaning in PMI-1; FromPmiText
// turns such a text back. kCorrupt: the text is not of that form.
std::string ToPmiText(std::string_view words);
StatusOr<std::string> FromPmiText(std::string_view text);

}  // namespace ferry::client
