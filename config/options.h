// Every option of Ferry, for the daemon, the ranks and the tools, in one place.
//
// A value comes from, in increasing precedence: the default below, the TOML file (toml_loader.h),
// the environment (environment.h), the flags; loader.h puts them together. A name or
// value that is not understood is an error of code kConfiguration which says where it stands and
// what is allowed.
//
// To add an option: a member with its default here, a row in the table of options.cc, then
// `bazel run //config:print_reference` (see docs/configuration.md). Its environment variable and
// its flag follow from its name: eager_max_bytes, FERRY_EAGER_MAX_BYTES, --eager_max_bytes.
//
// Plain data and pure functions: any thread, nothing blocks. Units are in the names.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "common/status.h"

namespace ferry::config {

// The table (options.cc), docs/configuration.md and `ferryd --help` explain each option.
struct Options {
  // The daemon's place.
  std::string config_file;
  std::string run_directory;  // empty until FinishOptions (environment.h)
  std::string node_name;      // empty: the host name
  std::string users = "auto";
  std::string daemon_user;
  std::string progress_affinity = "auto";
  std::string staging_node = "auto";

  // Network.
  std::string provider = "auto";
  std::string fabric_address = "127.0.0.1";
  uint64_t fabric_port = 0;
  std::string fabric_rails;  // empty: one NIC
  uint64_t rail_stripe_bytes = uint64_t{512} * 1024;
  std::string control_address = "127.0.0.1";
  std::string node_addresses;  // empty: any
  uint64_t control_port = 0;
  std::string tls_ca_file;
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string metrics_address;  // empty: none
  std::string metrics_access = "loopback";
  std::string metrics_readers;  // empty: root and ferryd's user

  // Limits.
  uint64_t max_local_ranks = 1024;
  uint64_t max_ranks = 65536;
  uint64_t request_limit = 16384;
  uint64_t unexpected_limit = 1048576;

  // Quotas of each user; 0: no limit.
  uint64_t quota_sessions = 0;
  uint64_t quota_regions = 16384;
  uint64_t quota_pinned_bytes = 0;
  uint64_t quota_jobs = 256;
  uint64_t quota_nodes = 4096;
  uint64_t quota_ranks = 262144;
  uint64_t quota_requests = 17ULL << 20;

  // Memory registered with the network.
  uint64_t registration_cache_entries = 16384;
  uint64_t registration_cache_bytes = 0;  // 0: no limit
  uint64_t registration_piece_bytes = 64ULL << 20;

  // Messages.
  uint64_t heap_bytes = 64ULL << 20;
  uint64_t eager_max_bytes = 8192;
  uint64_t receiver_first_min_bytes = 0;
  uint64_t rendezvous_chunk_bytes = 128ULL << 10;
  uint64_t staging_block_bytes = 256ULL << 10;
  uint64_t staging_blocks = 32;
  uint64_t staging_min_blocks = 8;
  uint64_t staging_idle_ms = 10000;
  std::string staging_weights;  // empty: all alike
  uint64_t copy_workers = 1;
  std::string worker_mode = "auto";
  std::string worker_program;  // empty: beside ferryd, or in ../libexec/ferry or ../lib/ferry

  // Direct links.
  std::string direct_links = "auto";
  std::string direct_link_provider = "auto";
  uint64_t direct_links_per_rank = 64;
  uint64_t direct_links_per_job = 0;  // 0: no limit
  uint64_t quota_links = 0;           // 0: no limit
  uint64_t direct_link_messages = 256;
  uint64_t direct_link_bytes = 4ULL << 20;
  uint64_t direct_link_idle_ms = 10000;

  // Waiting.
  uint64_t spin_pauses = 64;
  uint64_t idle_before_sleep_us = 200;
  uint64_t daemon_idle_before_sleep_us = 50;

  // Failures.
  uint64_t heartbeat_interval_ms = 250;
  uint64_t peer_timeout_ms = 15000;
  uint64_t operation_timeout_ms = 20000;
  uint64_t attach_timeout_ms = 5000;
  uint64_t drain_timeout_ms = 5000;

  // GPUs.
  std::string gpu_backend = "auto";
  std::string cuda_library;
  std::string hip_library;
  std::string level_zero_library;
  uint64_t gpu_idle_release_ms = 10000;
  uint64_t pipeline_threshold_bytes = 256ULL << 10;
  std::string pipeline_mode = "advanced";
  uint64_t pipeline_blocks_to_host = 2;
  uint64_t pipeline_blocks_to_device = 2;
  uint64_t pipeline_block_bytes = 1ULL << 20;
  uint64_t pipeline_staging_blocks = 16;
  uint64_t pipeline_staging_min_blocks = 8;
  uint64_t offload_min_bytes = 8192;
  uint64_t matched_cell_bytes = 8192;
  uint64_t matched_cells = 2;
  uint64_t deferred_work_entries = 1ULL << 20;  // 0: none
  std::string deferred_work_weights;            // empty: all alike
  std::string counter_pages = "auto";

  // MPI.
  std::string collective_table;       // empty: the built-in one
  std::string collective_algorithms;  // empty: as the table says
  uint64_t device_reduction_min_bytes = 256ULL << 10;
  std::string memory_alloc_kinds;  // empty: those that the standard presumes
  std::string initial_errhandler = "mpi_errors_are_fatal";
  uint64_t mpi_check = 0;
  uint64_t mpi_warn_after_ms = 10000;  // 0: never

  // OpenSHMEM.
  uint64_t shmem_heap_bytes = 0;  // 0: as the node's memory allows
  std::string shmem_statics = "shared";
  uint64_t shmem_check = 0;
  std::string shmem_cutovers;  // empty: kernels store and load, whatever the size

  // Log.
  std::string log_level = "info";
  std::string log_format = "text";
  std::string log_file;
  std::string job_records;  // empty: none
  uint64_t job_records_kept = 1000;
  std::string job_reports;  // empty: none
  std::string profile = "off";
  uint64_t profile_bytes = 1ULL << 30;
  uint64_t trace_bytes = 4ULL << 20;
  uint64_t trace_events = 131072;
  std::string backtrace = "on";

  // Emulated devices and faults.
  uint64_t host_gpu_count = 1;
  uint64_t host_gpu_memory_bytes = 1ULL << 30;
  uint64_t host_link_h2d_mb_per_s = 0;
  uint64_t host_link_d2h_mb_per_s = 0;
  uint64_t host_link_pageable_h2d_mb_per_s = 0;
  uint64_t host_link_pageable_d2h_mb_per_s = 0;
  uint64_t host_link_d2d_mb_per_s = 0;
  uint64_t host_link_latency_us = 0;
  uint64_t host_link_pageable_latency_us = 0;
  uint64_t host_link_engines = 2;
  uint64_t host_link_guard = 0;
  uint64_t host_launch_us = 0;
  uint64_t host_synchronize_us = 0;
  std::string faults;  // empty: none

  // Launching.
  std::string launcher = "ssh";
  std::string rsh;  // empty: that of `launcher`
  std::string malloc = "system";
  std::string bind_to = "auto";
  uint64_t tree_radix = 16;  // 0: the daemons of a job are no tree

  // A rank's place in its job, set by its launcher; size is 0 outside a job.
  std::string job_id;
  std::string job_secret;
  uint64_t rank = 0;
  uint64_t size = 0;
  uint64_t node = 0;
  uint64_t abort_fd = 0;
  uint64_t app = 0;
  uint64_t app_size = 0;       // 0: as many as the job has
  uint64_t universe_size = 0;  // 0: unknown

  bool operator==(const Options&) const = default;
};

enum class Group {
  kPlace,
  kNetwork,
  kLimits,
  kMessages,
  kLinks,
  kWaiting,
  kFailures,
  kGpu,
  kMpi,
  kShmem,
  kLog,
  kSimulation,
  kLaunching,
  kLaunch
};

// Where an option may be set.
enum class Source {
  kAnywhere,        // file, environment and flags
  kNotFile,         // environment and flags
  kEnvironmentOnly  // set by launchers
};

// One row of the table.
struct Option {
  Group group;
  const char* name;
  std::variant<uint64_t Options::*, std::string Options::*> member;
  const char* unit;  // "bytes"; empty where there is none
  uint64_t min;      // of a number; of a text, its length in bytes
  uint64_t max;
  const char* choices;  // "text|json"; empty where any text is allowed
  const char* help;     // whole sentences
  Source source = Source::kAnywhere;
  bool secret = false;  // never printed, not even in an error
};

// All options, grouped, in the order in which documents list them.
std::span<const Option> OptionTable();

// A heading for the group, such as "Network".
const char* GroupTitle(Group group);

// The row of that name, or null.
const Option* FindOption(std::string_view name);

// Returns true for a number of bytes, which may also be written as 4K, 16M, 1G or 4KiB.
bool IsSize(const Option& option);

// "FERRY_EAGER_MAX_BYTES".
std::string EnvironmentVariable(const Option& option);

// The allowed values as a phrase: "an integer from 0 to 8192 (bytes)".
std::string AllowedValues(const Option& option);

// The value held in `options`, as SetOption would read it; "(secret)" for a secret.
std::string OptionText(const Option& option, const Options& options);

// Reads `text` into `options`. `where` opens the error message: "ferryd.toml:12", "flag --rank".
Status SetOption(const Option& option, std::string_view text, std::string_view where,
                 Options* options);

// The error for a name that no row has; it suggests the nearest one.
Status UnknownOption(std::string_view name, std::string_view where);

// Checks values that must fit each other, which no single row can check.
Status CheckOptions(const Options& options);

// Returns true if a ferryd with these options serves all users, not its own alone.
bool ServesAll(const Options& options);

}  // namespace ferry::config
