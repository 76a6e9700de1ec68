// The memory that ranks of this node hand over to the daemon: quotas, imports by worker processes,
// registration with the data plane, and release.
//
// Thread: the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/status.h"
#include "daemon/jobs/jobs.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"

namespace ferry::daemon {

class JobRegions {
 public:
  // All must outlive it.
  JobRegions(boost::asio::io_context& context, Jobs& jobs, DataPlane& data_plane,
             QuotaLedger& quotas, const RegistryLimits& limits);

  // Takes the region's part of the user's quota. Call it before a region of that size is mapped.
  // kLimitExceeded.
  StatusOr<QuotaHold> Reserve(const Session& session, uint64_t size_bytes);
  // Has device memory that only streams reach imported, so that the data plane can copy from and to
  // it. Calls `done` once, now or later, when Region::is_staged says whether that will be so; not
  // at all if the rank ends before.
  void Import(const Session& session, const std::shared_ptr<Region>& region,
              std::function<void()> done);
  // The job's worker process has ended the import of a region, as `status` says.
  void OnImport(const std::string& job_id, uint32_t rank, uint32_t region, const Status& status);
  // Messages may use the region from now on. kNotInitialized, kInvalidArgument, kAlreadyExists, and
  // errors of DataPlane::AddRegion.
  Status Add(Session& session, const std::shared_ptr<Region>& region);
  // Calls `done` once, now or later, when nothing here uses it any more. kNotFound.
  void Remove(Session& session, uint32_t region, std::function<void(const Status&)> done);

  // Regions that have been removed, but of which the data plane has not let go yet.
  uint64_t leaving() const { return leaving_; }

 private:
  void WatchGpus();
  static void NoteImport(JobRecord& job, uint32_t rank, const Region& region, const Status& status);

  boost::asio::io_context& context_;
  Jobs& jobs_;
  DataPlane& data_plane_;
  QuotaLedger& quotas_;
  const RegistryLimits& limits_;
  boost::asio::steady_timer gpu_timer_;
  bool watches_gpus_ = false;  // gpu_timer_ runs
  uint64_t leaving_ = 0;
};

}  // namespace ferry::daemon
