// The other home of a core, as a data plane: no staging memory, no workers, no pairs and rings, but
// private memory that it reaches itself, and engines of ranks that it may run. So is the home in a
// rank, for that one rank; here it serves all ranks of a node, for the tests of the data plane.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/options.h"
#include "daemon/faults/faults.h"
#include "daemon/plane/data_plane.h"
#include "daemon/plane/mailbox.h"
#include "daemon/progress/progress_plane.h"
#include "internode/core/progress_core.h"
#include "tests/internode/core/plane_rank.h"

namespace ferry::daemon {

class OwnPlane final : public DataPlane, private progress::Home {
 public:
  // The rank of that number, null while its engine is not there yet. Any thread.
  using FindRank = std::function<PlaneRank*(uint32_t rank)>;

  static StatusOr<std::unique_ptr<OwnPlane>> Create(const config::Options& options,
                                                    std::unique_ptr<transport::Transport> transport,
                                                    progress::CoreHooks hooks, FindRank find_rank);
  ~OwnPlane() override;

  std::vector<std::byte> FabricAddressFor(uint64_t guest) const override {
    return core_->transport().AddressFor(guest);
  }
  std::vector<NicStatistics> Nics() const override;
  RegistrationStatistics Registered() const override { return core_->control().Registered(); }
  Status StartTrace() override;
  StatusOr<TraceDump> StopTrace() override;
  std::vector<FaultReport> Faults(bool release) override;
  RankReport Inspect(const std::string& job_id, uint32_t rank) const override;
  PlaceReport PlaceOf(const Session& /*session*/) const override { return {}; }
  Status AddJob(const JobPlan& plan) override;
  void RemoveJob(const std::string& job_id) override;
  Status AddSession(std::shared_ptr<Session> session) override;
  void RemoveSession(const std::string& job_id, uint32_t rank, Departure departure) override;
  void ReleaseSession(const std::string& /*job_id*/, uint32_t /*rank*/) override {}
  Status AddRegion(const std::string& job_id, uint32_t rank,
                   std::shared_ptr<const Region> region) override;
  using DataPlane::RemoveRegion;
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                    std::function<void()> done) override;
  Status AddPair(const PairPlan& /*plan*/) override {
    return {ErrorCode::kUnsupported, "no pairs"};
  }
  void EndPair(const PairName&, uint64_t, ErrorCode) override {}
  void RemovePair(const PairName&) override {}
  Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) override;
  void NodeReturned(const std::string& job_id, uint32_t node) override;
  void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) override;
  void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) override;
  bool AreParted(const std::string& job_id, uint32_t rank, uint32_t peer) override;
  bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) override;
  void NodeFailed(uint64_t link, ErrorCode error) override;
  void PoisonJob(const std::string& job_id, ErrorCode error) override;
  void Probe(std::function<void()> answer) override { mailbox_.Post(std::move(answer)); }
  bool Idle() const override;

  // By which ranks are served from now on: ferryd's, or that of a rank's own core.
  progress::Seat (*seat)(const progress::ServedSegments&) = progress::DaemonSeat;

  TurnStatistics Turns() const { return thread_->statistics(); }

 private:
  OwnPlane(uint64_t operation_timeout_ns, FindRank find_rank);

  // progress::Home. All ranks are in this process.
  std::byte* Reach(const progress::ServedRank& rank, uint64_t address, uint64_t bytes) override;
  void LetMatch(progress::ServedRank& rank) override;

  template <typename Answer>
  Answer Ask(const std::function<Answer(progress::ProgressCore&)>& question) const;
  void Tell(const std::function<void(progress::ProgressCore&)>& news);

  const uint64_t operation_timeout_ns_;
  const FindRank find_rank_;
  std::map<std::pair<std::string, uint32_t>, int> doorbells_;
  std::unique_ptr<daemon::Faults> faults_;  // null: none
  Mailbox mailbox_;
  std::unique_ptr<progress::ProgressCore> core_;
  std::unique_ptr<ProgressThread> thread_;
};

}  // namespace ferry::daemon
