// The calls of PMI-2, by which ranks find each other where a launcher offers nothing but a library
// that has them: HPE Cray's (mpiexec of PALS, srun --mpi=cray_shasta). Slurm's libpmi2 has them,
// too, but there the wire of PMI-1 (pmi_wire.h) serves, which needs no library.
// Source: MPICH's src/pmi/include/pmi2.h, and Slurm's slurm/pmi2.h.
//
// libpmi2.so.0, or libpmi2.so, is opened when it is needed; the source declares the functions that
// are used. PMI2_Abort is not: it ends the process by exit, with a code of its own; ferryd ends the
// other ranks, and the launcher sees this one's exit code.
//
// Calling thread: one at a time. Open blocks until the launcher answers, Fence until all ranks have
// called it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/bootstrap/exchange.h"
#include "common/status.h"

namespace ferry::client {

class Pmi2Library : public Exchange {
 public:
  // Returns true if a launcher started this process as a rank and there is such a library: PMI_RANK
  // and PMI_SIZE, or PALS_RANKID, are set. Opens the library to find out.
  static bool IsAround(const char* const* environment);

  // Meets the launcher. kUnsupported: the library lacks a function. kSystem: a call failed.
  // kCorrupt: the library says another rank or size than the environment, as where it has not found
  // the launcher and takes this process for a job of one.
  static StatusOr<std::unique_ptr<Pmi2Library>> Open(const char* const* environment);
  ~Pmi2Library() override;  // leaves the launcher in good order

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return size_; }
  const std::vector<uint32_t>& local_ranks() const override { return local_ranks_; }
  std::optional<uint32_t> app() const override { return app_; }
  std::optional<uint32_t> universe_size() const override { return universe_size_; }

  Status Meet() override;
  // kLimitExceeded: the words are too long.
  Status Put(const std::string& name, const std::string& words) override;
  Status Fence() override;
  StatusOr<std::string> Get(uint32_t rank, const std::string& name) override;

 private:
  struct Calls;  // of the library

  Pmi2Library();
  Status Load();
  Status Enter(const char* const* environment);
  std::optional<std::string> FindAttribute(const char* name) const;

  std::unique_ptr<Calls> calls_;
  bool entered_ = false;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  std::string job_;  // the launcher's name for it
  std::vector<uint32_t> local_ranks_;
  std::optional<uint32_t> app_;
  std::optional<uint32_t> universe_size_;
};

}  // namespace ferry::client
