// The table of options: what each one means, and what it may be. See options.h.
#include "config/options.h"

namespace ferry::config {
namespace {

constexpr uint64_t kKibi = 1024;
constexpr uint64_t kMebi = 1024 * kKibi;
constexpr uint64_t kTebi = kMebi * kMebi;
constexpr uint64_t kHourMs = 3'600'000;
constexpr uint64_t kSecondUs = 1'000'000;
constexpr uint64_t kMillion = 1ULL << 20;
constexpr uint64_t kPathMax = 4095;
constexpr uint64_t kUnixPathMax = 80;  // sun_path is 108 bytes and socket names follow

constexpr Option Number(Group group, const char* name, uint64_t Options::*member, const char* unit,
                        uint64_t min, uint64_t max, const char* help) {
  return {group, name, member, unit, min, max, "", help};
}

constexpr Option Text(Group group, const char* name, std::string Options::*member, uint64_t min,
                      uint64_t max, const char* help) {
  return {group, name, member, "", min, max, "", help};
}

constexpr Option Choice(Group group, const char* name, std::string Options::*member,
                        const char* choices, const char* help) {
  return {group, name, member, "", 0, kPathMax, choices, help};
}

constexpr Option From(Source source, Option option) {
  option.source = source;
  return option;
}

constexpr Option Secret(Option option) {
  option.secret = true;
  return option;
}

constexpr Option kTable[] = {
    From(Source::kNotFile, Text(Group::kPlace, "config_file", &Options::config_file, 0, kPathMax,
                                "The TOML file to read; empty reads none.")),
    Text(Group::kPlace, "run_directory", &Options::run_directory, 0, kUnixPathMax,
         "Directory of the daemon's sockets, mode 0700 or 0755; one daemon per directory. "
         "Empty means /run/ferry for root, else $XDG_RUNTIME_DIR/ferry, else /tmp/ferry-UID. "
         "ferryrun tells its ranks; other ranks that belong to a system daemon need "
         "FERRY_RUN_DIRECTORY=/run/ferry."),
    Text(Group::kPlace, "node_name", &Options::node_name, 0, 63,
         "This node's name in messages and reports. Empty means the host name."),
    Choice(Group::kPlace, "users", &Options::users, "auto|own|all",
           "Whom the daemon serves: own, the user it runs as (its sockets are closed to others); "
           "all, every user of the node; auto, all if it runs as root, else own."),
    Text(Group::kPlace, "progress_affinity", &Options::progress_affinity, 1, kPathMax,
         "The CPUs of the daemon's progress thread: none, any; a list such as 0-3,8, these; auto, "
         "those at its NIC's NUMA node, on a machine with several."),
    Text(Group::kPlace, "staging_node", &Options::staging_node, 1, 15,
         "The NUMA node that staging memory comes from, if it has room: none, any; a number, that "
         "one; auto, the NIC's, on a machine with several."),

    Text(Group::kNetwork, "provider", &Options::provider, 1, 63,
         "The libfabric provider that joins the nodes, such as tcp;ofi_rxm. auto takes the "
         "fastest one present."),
    Text(Group::kNetwork, "fabric_address", &Options::fabric_address, 1, 255,
         "Local address of the data plane: an IP address or a host name."),
    Number(Group::kNetwork, "fabric_port", &Options::fabric_port, "", 0, 65535,
           "Port of the data plane; 0 takes a free one."),
    Text(
        Group::kNetwork, "fabric_rails", &Options::fabric_rails, 0, 1023,
        "Further NICs for the data plane, beside the one of fabric_address: a list such as "
        "10.1.0.1,10.2.0.1 of IP addresses, or of libfabric's domains where NICs have no address, "
        "such as cxi1,cxi2. The first NIC carries messages, all of them large transfers. All nodes "
        "have some, or none has."),
    Number(Group::kNetwork, "rail_stripe_bytes", &Options::rail_stripe_bytes, "bytes", 4096,
           uint64_t{1} << 40,
           "With several NICs, transfers of more than this are shared out among them, in pieces of "
           "this size; others go by the NIC nearest to the rank that has the least to do."),
    Text(Group::kNetwork, "control_address", &Options::control_address, 1, 255,
         "Local address on which other daemons reach this one's control plane. Only a "
         "loopback address may do without TLS; with it, a host name will do too. 0.0.0.0 or :: "
         "listens at all addresses; others then call the node by its node_name."),
    Number(Group::kNetwork, "control_port", &Options::control_port, "", 0, 65535,
           "Port of the control plane; 0 takes a free one."),
    Text(Group::kNetwork, "tls_ca_file", &Options::tls_ca_file, 0, kPathMax,
         "PEM file of the authorities whose certificates other daemons must have. Set all three of "
         "these files, and daemons speak TLS; set none, and they do not. SIGHUP reads them anew."),
    Text(Group::kNetwork, "tls_cert_file", &Options::tls_cert_file, 0, kPathMax,
         "PEM file of this node's certificate, followed by those that link it to its authority. It "
         "must be valid for the host by which jobs name this node, and for client and server."),
    Text(Group::kNetwork, "tls_key_file", &Options::tls_key_file, 0, kPathMax,
         "PEM file of the certificate's private key, without passphrase, mode 0600 or 0400."),
    Text(Group::kNetwork, "metrics_address", &Options::metrics_address, 0, 255,
         "host:port that serves metrics to Prometheus at /metrics; port 0 takes a free one "
         "(ferryctl status tells it). Empty serves none."),
    Choice(Group::kNetwork, "metrics_access", &Options::metrics_access, "loopback|anyone",
           "Who may read them: loopback refuses a metrics_address that other machines reach; "
           "anyone allows it. There is no password."),

    Number(Group::kLimits, "max_local_ranks", &Options::max_local_ranks, "ranks", 1, 1024,
           "How many ranks one daemon serves at a time."),
    Number(Group::kLimits, "max_ranks", &Options::max_ranks, "ranks", 1, kMillion,
           "How many ranks one job may have, over all nodes."),
    Number(Group::kLimits, "request_limit", &Options::request_limit, "requests", 64, 16 * kMillion,
           "How many requests a rank may have pending; the next one fails with a limit error."),
    Number(Group::kLimits, "unexpected_limit", &Options::unexpected_limit, "messages", 64,
           16 * kMillion,
           "How many messages a rank may hold that arrived before their receive was posted."),
    Number(Group::kLimits, "quota_sessions", &Options::quota_sessions, "sessions", 0, kMillion,
           "How many ranks each user, root included, may have attached to one daemon; 0 sets no "
           "limit but max_local_ranks."),
    Number(Group::kLimits, "quota_regions", &Options::quota_regions, "regions", 0, 16 * kMillion,
           "How many regions (heaps, allocations of device memory) each user may have registered; "
           "0 sets no limit."),
    Number(Group::kLimits, "quota_pinned_bytes", &Options::quota_pinned_bytes, "bytes", 0,
           1024 * kTebi,
           "How much memory the regions of each user may hold in all; 0 sets no limit."),
    Number(Group::kLimits, "quota_jobs", &Options::quota_jobs, "jobs", 0, kMillion,
           "How many jobs each user may have on one daemon; 0 sets no limit."),
    Number(Group::kLimits, "quota_requests", &Options::quota_requests, "requests", 0,
           1024 * kMillion,
           "How many requests (request_limit of each rank) the ranks of each user may have in all: "
           "the daemon may have to keep some 250 bytes for each; 0 sets no limit."),
    Number(
        Group::kLimits, "registration_cache_entries", &Options::registration_cache_entries,
        "registrations", 0, 16 * kMillion,
        "How many registrations of ranks' memory the daemon keeps with the network; what was not "
        "used for longest goes first, and what is in use stays. 0 sets no limit."),
    Number(
        Group::kLimits, "registration_cache_bytes", &Options::registration_cache_bytes, "bytes", 0,
        1024 * kTebi,
        "How much memory they may hold in all. Half of each limit is for what ranks offer to other "
        "nodes, so no larger message than that passes from a heap. 0 sets no limit."),
    Number(Group::kLimits, "registration_piece_bytes", &Options::registration_piece_bytes, "bytes",
           4 * kKibi, 1024 * kTebi,
           "A region up to this size is registered whole when it is first used between nodes; of a "
           "longer one, the pieces of this size that the message lies in."),

    Number(Group::kMessages, "heap_bytes", &Options::heap_bytes, "bytes", kMebi, kTebi,
           "Size of a rank's Ferry heap in host memory: the memory that peers and daemon reach "
           "without a second copy."),
    Number(Group::kMessages, "eager_max_bytes", &Options::eager_max_bytes, "bytes", 0, 8 * kKibi,
           "Messages up to this size are sent at once through the receiver's lane; larger ones "
           "wait for the receive (rendezvous). At most one slab cell."),
    Number(Group::kMessages, "receiver_first_min_bytes", &Options::receiver_first_min_bytes,
           "bytes", 0, kTebi,
           "Receives from other nodes of this size or more, into a heap, are told to their source, "
           "which then writes the message there (receiver-first rendezvous); 0: none, all are "
           "fetched."),
    Number(Group::kMessages, "rendezvous_chunk_bytes", &Options::rendezvous_chunk_bytes, "bytes",
           4 * kKibi, 16 * kMebi,
           "A rendezvous inside a node is copied in chunks of this size by whoever is free."),
    Number(Group::kMessages, "staging_block_bytes", &Options::staging_block_bytes, "bytes",
           4 * kKibi, 64 * kMebi,
           "Block size of the pipeline between nodes, for memory that the network cannot reach "
           "directly."),
    Number(Group::kMessages, "staging_blocks", &Options::staging_blocks, "blocks", 2, 4096,
           "How many such blocks a job gets at most on each node: more and more, while transfers "
           "wait for one."),
    Number(Group::kMessages, "staging_min_blocks", &Options::staging_min_blocks, "blocks", 2, 4096,
           "How many of them it gets at once when it needs the first, and keeps; no more than "
           "staging_blocks in any case."),
    Number(Group::kMessages, "staging_idle_ms", &Options::staging_idle_ms, "ms", 1, kHourMs,
           "Staging blocks above the least number, for host or device memory, are given back "
           "once nobody has needed them for this long. Those for device memory stay where a worker "
           "process copies: it keeps them pinned for the GPU."),
    Text(Group::kMessages, "staging_weights", &Options::staging_weights, 0, kPathMax,
         "How ranks of a job share its staging blocks while there are too few of them: as "
         "RANK:WEIGHT,... such as 0:4,7:2, a rank gets up to WEIGHT (1 to 100) times what one "
         "gets that is not named. Empty: all the same."),
    Number(Group::kMessages, "copy_workers", &Options::copy_workers, "threads", 0, 64,
           "Threads of the daemon that copy into and out of staging blocks; 0 leaves the copies "
           "to the progress thread."),
    Choice(
        Group::kMessages, "worker_mode", &Options::worker_mode, "auto|thread|process",
        "Who matches and copies for ranks that compute: thread, a thread of the daemon, for ranks "
        "of its own user only; process, a process per job with the user of its ranks; auto, the "
        "thread for ranks of the daemon's own user and a process for others."),
    Text(Group::kMessages, "worker_program", &Options::worker_program, 0, kPathMax,
         "The program of such a process. Empty means ferry-worker beside ferryd, or in "
         "../libexec/ferry or ../lib/ferry of its directory."),

    Number(Group::kWaiting, "spin_pauses", &Options::spin_pauses, "pauses", 0, kMillion,
           "How often a waiter pauses before it starts to yield the core between polls. Ranks that "
           "outnumber their node's cores do not."),
    Number(Group::kWaiting, "idle_before_sleep_us", &Options::idle_before_sleep_us, "microseconds",
           0, 10 * kSecondUs,
           "How long a waiting rank polls without progress before it sleeps. Waking it costs "
           "its peer tens of microseconds."),
    Number(Group::kWaiting, "daemon_idle_before_sleep_us", &Options::daemon_idle_before_sleep_us,
           "microseconds", 0, 10 * kSecondUs, "The same for the daemon's progress thread."),

    Number(Group::kFailures, "heartbeat_interval_ms", &Options::heartbeat_interval_ms,
           "milliseconds", 10, kHourMs, "How often daemons greet each other."),
    Number(
        Group::kFailures, "peer_timeout_ms", &Options::peer_timeout_ms, "milliseconds", 50, kHourMs,
        "A daemon silent for this long counts as cut off and the operations with its ranks fail; "
        "messages flow again once it is back. A dead one is noticed at once. At least twice "
        "heartbeat_interval_ms."),
    Number(Group::kFailures, "operation_timeout_ms", &Options::operation_timeout_ms, "milliseconds",
           100, kHourMs,
           "A network operation not complete after this long fails. Longer than peer_timeout_ms, "
           "so that a link that is cut for less costs nothing but time."),
    Number(Group::kFailures, "attach_timeout_ms", &Options::attach_timeout_ms, "milliseconds", 100,
           kHourMs,
           "How long a rank waits for its daemon, and for the other ranks, when it joins a job."),
    Number(Group::kFailures, "drain_timeout_ms", &Options::drain_timeout_ms, "milliseconds", 0,
           kHourMs, "How long a daemon that a signal stops waits for its ranks to leave."),
    Text(Group::kFailures, "faults", &Options::faults, 0, kPathMax,
         "For tests: what the daemon is to do wrong, as POINT:N:ACTION,... such as "
         "staging.copy_in:3:SYSTEM (docs/operations.md lists them). Empty: nothing."),

    Choice(Group::kGpu, "gpu_backend", &Options::gpu_backend, "auto|cuda|hip|level_zero|host",
           "Where device memory lives: cuda, hip and level_zero use GPUs of NVIDIA, AMD and Intel; "
           "host emulates devices in host memory; auto takes the first of them whose library and "
           "driver are there and have a device."),
    Text(Group::kGpu, "cuda_library", &Options::cuda_library, 0, kPathMax,
         "The CUDA driver's library, where it is not the libcuda.so.1 that the linker finds."),
    Text(Group::kGpu, "hip_library", &Options::hip_library, 0, kPathMax,
         "ROCm's HIP run time, where it is not the libamdhip64.so that the linker finds."),
    Text(Group::kGpu, "level_zero_library", &Options::level_zero_library, 0, kPathMax,
         "The Level Zero loader, where it is not the libze_loader.so.1 that the linker finds."),
    Number(Group::kGpu, "gpu_idle_release_ms", &Options::gpu_idle_release_ms, "ms", 0, kHourMs,
           "How long a daemon or worker process keeps a GPU backend open, and its contexts on the "
           "devices, once no rank's memory is imported any more."),
    Number(Group::kGpu, "host_gpu_count", &Options::host_gpu_count, "devices", 1, 64,
           "How many devices the host backend emulates on this node."),
    Number(Group::kGpu, "host_gpu_memory_bytes", &Options::host_gpu_memory_bytes, "bytes", kMebi,
           kTebi, "Memory of each emulated device."),
    Number(Group::kGpu, "host_link_h2d_mb_per_s", &Options::host_link_h2d_mb_per_s, "MB/s", 0,
           kMillion,
           "Emulated bandwidth from host to device, of copies from pinned memory. 0 emulates no "
           "link: copies run at memory speed. Set it together with host_link_d2h_mb_per_s."),
    Number(Group::kGpu, "host_link_d2h_mb_per_s", &Options::host_link_d2h_mb_per_s, "MB/s", 0,
           kMillion, "The same from device to host."),
    Number(Group::kGpu, "host_link_pageable_h2d_mb_per_s",
           &Options::host_link_pageable_h2d_mb_per_s, "MB/s", 0, kMillion,
           "Emulated bandwidth from host to device for memory that is neither pinned nor "
           "registered; 0 means as for pinned memory."),
    Number(Group::kGpu, "host_link_pageable_d2h_mb_per_s",
           &Options::host_link_pageable_d2h_mb_per_s, "MB/s", 0, kMillion,
           "The same from device to host."),
    Number(Group::kGpu, "host_link_d2d_mb_per_s", &Options::host_link_d2d_mb_per_s, "MB/s", 0,
           kMillion,
           "Emulated bandwidth of copies inside a device; 0 leaves them only their start-up. It "
           "needs an emulated link, as do the options that follow."),
    Number(Group::kGpu, "host_link_latency_us", &Options::host_link_latency_us, "microseconds", 0,
           kSecondUs, "Emulated start-up of every copy to, from or inside a device."),
    Number(Group::kGpu, "host_link_pageable_latency_us", &Options::host_link_pageable_latency_us,
           "microseconds", 0, kSecondUs,
           "The same for memory that is neither pinned nor registered; 0 means "
           "host_link_latency_us."),
    Number(Group::kGpu, "host_link_engines", &Options::host_link_engines, "engines", 1, 2,
           "Emulated copy engines of each device: with 1 both directions take turns, with 2 each "
           "has its own."),
    Number(Group::kGpu, "host_link_guard", &Options::host_link_guard, "", 0, 1,
           "1: a program that touches device memory behind an emulated link without a stream is "
           "ended by a fault, as with a GPU whose memory CPUs do not reach."),
    Number(Group::kGpu, "host_launch_us", &Options::host_launch_us, "microseconds", 0, kMillion,
           "How long after it was enqueued an operation of an emulated device's stream begins at "
           "the earliest, as kernels of real devices do. Of operations enqueued ahead nothing is "
           "seen of it."),
    Number(Group::kGpu, "host_synchronize_us", &Options::host_synchronize_us, "microseconds", 0,
           kMillion, "How much longer waiting for an emulated device's stream takes."),
    Number(
        Group::kGpu, "pipeline_threshold_bytes", &Options::pipeline_threshold_bytes, "bytes", 0,
        kTebi,
        "Messages between nodes up to this size, from or to device memory that the network cannot "
        "reach, are copied in one block; longer ones in several, so that copies and network "
        "overlap."),
    Choice(
        Group::kGpu, "pipeline_mode", &Options::pipeline_mode, "advanced|even|naive",
        "How longer ones are cut: even, into equal blocks; advanced, with half of the first block "
        "given to the last, so that the last step starts sooner; naive, not at all."),
    Number(Group::kGpu, "pipeline_blocks_to_host", &Options::pipeline_blocks_to_host, "blocks", 1,
           1024, "Into how many blocks the sending side cuts a message from device memory."),
    Number(
        Group::kGpu, "pipeline_blocks_to_device", &Options::pipeline_blocks_to_device, "blocks", 1,
        1024,
        "Into how many blocks a message to device memory is cut for the receiving side; where the "
        "sending side cuts too, the greater number counts."),
    Number(Group::kGpu, "pipeline_block_bytes", &Options::pipeline_block_bytes, "bytes", 4 * kKibi,
           64 * kMebi,
           "No block of device memory is longer than this: the size of its staging "
           "blocks."),
    Number(Group::kGpu, "pipeline_staging_blocks", &Options::pipeline_staging_blocks, "blocks", 0,
           4096,
           "How many pinned staging blocks for device memory a job gets at most on each node; at "
           "least 2. 0: ranks stage such memory by themselves, in their heaps, and the daemon uses "
           "no GPU."),
    Number(Group::kGpu, "pipeline_staging_min_blocks", &Options::pipeline_staging_min_blocks,
           "blocks", 2, 4096,
           "How many of them it gets at once when it needs the first, and keeps; no more than "
           "pipeline_staging_blocks in any case."),
    Number(Group::kGpu, "offload_min_bytes", &Options::offload_min_bytes, "bytes", 0, kTebi,
           "From this size on, messages to other nodes from device memory that the network "
           "cannot reach go through blocks of the heap that are registered with the GPU backend "
           "and kept for later ones (offloaded send buffers): those of up to "
           "pipeline_threshold_bytes, and all where ranks stage such memory by themselves. 0: "
           "none; the latter then go through blocks that are not kept."),
    Number(Group::kGpu, "matched_cell_bytes", &Options::matched_cell_bytes, "bytes", 0, 8192,
           "Matched receives from other nodes of up to this size have cells in the heap, where "
           "messages may arrive before their start (docs/stream_triggered.md). 0: none; every "
           "send that is not ready then waits until the receiver is clear to send."),
    Number(Group::kGpu, "matched_cells", &Options::matched_cells, "cells", 2, 64,
           "How many cells each of them has: one fewer messages may arrive ahead of their starts."),
    Number(Group::kGpu, "deferred_work_entries", &Options::deferred_work_entries, "operations", 0,
           kMillion,
           "How many deferred operations the daemon has in a NIC at a time at most, no more than "
           "that has entries for in any case; what finds none is done by the daemon "
           "(docs/stream_triggered.md). 0: none at all."),
    Text(Group::kGpu, "deferred_work_weights", &Options::deferred_work_weights, 0, kPathMax,
         "How jobs share these entries while there are too few: as UID:WEIGHT,... such as "
         "1000:4,1001:2, jobs of that user get up to WEIGHT (1 to 100) times what others get. "
         "Empty: all the same."),

    Text(Group::kMpi, "collective_table", &Options::collective_table, 0, kPathMax,
         "File of rules that say which algorithm each of MPI's collectives takes (docs/mpi.md). "
         "Rank "
         "0 reads it for its whole job, where it runs. Empty: the built-in rules."),
    Text(Group::kMpi, "collective_algorithms", &Options::collective_algorithms, 0, kPathMax,
         "Algorithms of MPI's collectives by name, whatever the rules say, such as "
         "allreduce=ring,bcast=chain:131072; the number is that of the bytes in which long vectors "
         "are sent. Where one cannot do what is asked for, the rules count. Rank 0's value counts "
         "for its whole job."),
    Number(Group::kMpi, "device_reduction_min_bytes", &Options::device_reduction_min_bytes, "bytes",
           0, kTebi,
           "From this size of a rank's vector on, MPI's reductions of device memory that CPUs do "
           "not reach are computed by the device; shorter vectors are copied to host memory, and "
           "reduced by CPUs, which is sooner done."),
    Text(Group::kMpi, "memory_alloc_kinds", &Options::memory_alloc_kinds, 0, kPathMax,
         "Kinds of memory that an MPI program will use, such as mpi,system,cuda:device "
         "(mpi_memory_alloc_kinds of the standard): MPI then tells which of them it serves. "
         "Empty asks for mpi,system."),
    Choice(Group::kMpi, "initial_errhandler", &Options::initial_errhandler,
           "mpi_errors_are_fatal|mpi_errors_abort|mpi_errors_return",
           "What errors of MPI do until the program sets an error handler: end the job, for the "
           "first two, or make the call return."),
    Number(Group::kMpi, "mpi_check", &Options::mpi_check, "", 0, 1,
           "1: the ranks of a communicator compare each collective call before they carry it out "
           "(which one, root, operation, counts and types), and all fail with the same words where "
           "the calls do not belong together (docs/mpi.md). Rank 0's value counts for its whole "
           "job."),
    Number(Group::kMpi, "mpi_warn_after_ms", &Options::mpi_warn_after_ms, "milliseconds", 0,
           kHourMs,
           "A rank that has waited in a collective for so long writes to its standard error which "
           "ranks have not come to it; again after twice as long. 0: never."),

    Choice(Group::kLog, "log_level", &Options::log_level, "trace|debug|info|warn|error|off",
           "The least severe messages that the daemon and the tools log."),
    Choice(Group::kLog, "log_format", &Options::log_format, "text|json",
           "text for people, json for one object per line."),
    Text(Group::kLog, "log_file", &Options::log_file, 0, kPathMax,
         "File that log lines are appended to. Empty means standard error."),
    Number(
        Group::kLog, "trace_events", &Options::trace_events, "records", 1024, kMillion * 64,
        "How many records of 64 bytes `ferryctl trace` keeps; the oldest give way. The memory is "
        "taken when a trace starts and given back when it stops."),

    Choice(Group::kLaunching, "launcher", &Options::launcher, "ssh|srun|none",
           "How ferryrun reaches other hosts of a job: ssh, without a password; srun, as a step of "
           "the Slurm job that it runs in; none, not at all."),
    Text(Group::kLaunching, "rsh", &Options::rsh, 0, kPathMax,
         "The command for that instead, words between spaces, to which ferryrun adds the host and "
         "what to run there, such as ssh -p 2222. Empty means ssh -x -o BatchMode=yes with "
         "launcher ssh."),

    From(Source::kEnvironmentOnly, Text(Group::kLaunch, "job_id", &Options::job_id, 0, 63,
                                        "Name of the job, the same for all its ranks.")),
    Secret(
        From(Source::kEnvironmentOnly, Text(Group::kLaunch, "job_secret", &Options::job_secret, 0,
                                            128, "What a process must know to enter the job."))),
    From(Source::kEnvironmentOnly, Number(Group::kLaunch, "rank", &Options::rank, "", 0,
                                          kMillion - 1, "Number of this rank, from 0.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "size", &Options::size, "ranks", 0, kMillion,
                "Number of ranks of the job; 0 outside a job.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "node", &Options::node, "", 0, kMillion - 1,
                "Number of the rank's node within the job, from 0.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "abort_fd", &Options::abort_fd, "", 0, kMillion - 1,
                "Descriptor of a pipe on which the rank tells ferryrun that it aborts the job; 0: "
                "none.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "app", &Options::app, "", 0, kMillion - 1,
                "Which of the job's programs this rank runs, from 0 (MPI_APPNUM).")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "app_size", &Options::app_size, "ranks", 0, kMillion,
                "How many ranks run that program; 0: all of the job.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "universe_size", &Options::universe_size, "ranks", 0, kMillion,
                "For how many ranks there is room (MPI_UNIVERSE_SIZE); 0: for those of the job.")),
};

}  // namespace

std::span<const Option> OptionTable() { return kTable; }

const char* GroupTitle(Group group) {
  switch (group) {
    case Group::kPlace:
      return "The daemon's place";
    case Group::kNetwork:
      return "Network";
    case Group::kLimits:
      return "Limits";
    case Group::kMessages:
      return "Messages";
    case Group::kWaiting:
      return "Waiting";
    case Group::kFailures:
      return "Failures";
    case Group::kGpu:
      return "GPUs";
    case Group::kMpi:
      return "MPI";
    case Group::kLog:
      return "Log";
    case Group::kLaunching:
      return "Launching";
    case Group::kLaunch:
      return "A rank's place in its job (set by ferryrun)";
  }
  return "";
}

}  // namespace ferry::config
