// The table of options: the meaning of each, and its allowed values. See options.h.
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
                                "The TOML file to read. Empty: none.")),
    Text(Group::kPlace, "run_directory", &Options::run_directory, 0, kUnixPathMax,
         "Directory of the daemon's sockets, mode 0700 or 0755; each daemon needs one of its own. "
         "Empty: /run/ferry for root, else ferry in $XDG_RUNTIME_DIR or /run/user/UID, else a "
         "folder /tmp/ferry-UID-XXXXXX that ferryd makes, and programs find by its owner (in "
         "/dev/shm where /tmp cannot be written to). Ranks that ferryrun starts are told; other "
         "ranks that belong to a system daemon need FERRY_RUN_DIRECTORY=/run/ferry."),
    Text(Group::kPlace, "node_name", &Options::node_name, 0, 63,
         "This node's name in messages and reports. Empty: the host name."),
    Choice(Group::kPlace, "users", &Options::users, "auto|own|all",
           "Which users the daemon serves. own: the user it runs as (others cannot open its "
           "sockets); all: every user of the node; auto: all if it runs as root, else own."),
    Text(Group::kPlace, "daemon_user", &Options::daemon_user, 0, 63,
         "The user, by name or number, that a ferryd of all users runs as where that is not root. "
         "Programs speak to no ferryd but root's, their own user's and this user's. Empty: none."),
    Text(Group::kPlace, "progress_affinity", &Options::progress_affinity, 1, kPathMax,
         "The CPUs on which the daemon's progress thread runs. none: any; a list such as 0-3,8: "
         "these; auto: on a machine with several NUMA nodes, those of the NIC's node."),
    Text(Group::kPlace, "staging_node", &Options::staging_node, 1, 15,
         "The NUMA node that staging memory comes from while it has room. none: any; a number: "
         "that one; auto: on a machine with several, the NIC's."),

    Text(Group::kNetwork, "provider", &Options::provider, 1, 63,
         "What connects the nodes: ferry-tcp (sockets of Ferry's own), or a provider of libfabric, "
         "such as verbs;ofi_rxm. auto takes the fastest one present."),
    Text(Group::kNetwork, "fabric_address", &Options::fabric_address, 1, 255,
         "Local address of the data plane: an IP address or a host name."),
    Number(Group::kNetwork, "fabric_port", &Options::fabric_port, "", 0, 65535,
           "Port of the data plane. 0: any free one."),
    Text(Group::kNetwork, "fabric_rails", &Options::fabric_rails, 0, 1023,
         "Further NICs for the data plane, beside the one of fabric_address: a list of IP "
         "addresses such as 10.1.0.1,10.2.0.1, or of the NICs' names where they have none, such as "
         "cxi1,cxi2. Messages use the first NIC, large transfers all of them. Set it on all nodes "
         "or on none."),
    Number(Group::kNetwork, "rail_stripe_bytes", &Options::rail_stripe_bytes, "bytes", 4096,
           uint64_t{1} << 40,
           "With several NICs, a transfer larger than this is divided among them in pieces of this "
           "size. A smaller one uses the least busy of the NICs nearest to the rank."),
    Text(Group::kNetwork, "control_address", &Options::control_address, 1, 255,
         "Local address on which other daemons reach this one's control plane. Without TLS it must "
         "be a loopback address; with TLS it may also be a host name. 0.0.0.0 or :: listens on all "
         "addresses; others then call the node by its node_name."),
    Number(Group::kNetwork, "control_port", &Options::control_port, "", 0, 65535,
           "Port of the control plane. 0: any free one."),
    Text(Group::kNetwork, "node_addresses", &Options::node_addresses, 0, kPathMax,
         "The other nodes that jobs may name: a list of IP addresses, blocks such as 10.1.0.0/16, "
         "host names, and domains such as .cluster.example. A name in a job is compared with the "
         "names, an address with the addresses. Empty: any."),
    Text(Group::kNetwork, "tls_ca_file", &Options::tls_ca_file, 0, kPathMax,
         "PEM file of the authorities that must have signed other daemons' certificates. Daemons "
         "speak TLS if all three of these files are set, and do not if none is. SIGHUP reads them "
         "again."),
    Text(Group::kNetwork, "tls_cert_file", &Options::tls_cert_file, 0, kPathMax,
         "PEM file of this node's certificate, followed by those that link it to its authority. It "
         "must be valid for the host name by which jobs name this node, and for both client and "
         "server."),
    Text(Group::kNetwork, "tls_key_file", &Options::tls_key_file, 0, kPathMax,
         "PEM file of the certificate's private key, without passphrase, mode 0600 or 0400."),
    Text(Group::kNetwork, "metrics_address", &Options::metrics_address, 0, 255,
         "host:port at which Prometheus reads metrics, under /metrics, and others whether ferryd "
         "works, under /health. Port 0 takes any free one (ferryctl status shows it). Empty: "
         "metrics are not served."),
    Choice(Group::kNetwork, "metrics_access", &Options::metrics_access, "loopback|anyone",
           "Who may read metrics. loopback: only this machine, and a metrics_address that others "
           "reach is refused; anyone: other machines too. There is no password."),
    Text(Group::kNetwork, "metrics_readers", &Options::metrics_readers, 0, kPathMax,
         "Who reads the metrics of all users' jobs, beside root and ferryd's own user: users of "
         "this machine, and IP addresses or blocks of others, such as prometheus,10.1.0.5. Others "
         "read those of the node, and users those of their own jobs (docs/security.md)."),

    Number(Group::kLimits, "max_local_ranks", &Options::max_local_ranks, "ranks", 1, 1024,
           "How many ranks one daemon serves at a time."),
    Number(Group::kLimits, "max_ranks", &Options::max_ranks, "ranks", 1, kMillion,
           "How many ranks one job may have, over all nodes."),
    Number(Group::kLimits, "request_limit", &Options::request_limit, "requests", 64, 16 * kMillion,
           "How many requests of a rank may be pending. One more fails with a limit error."),
    Number(Group::kLimits, "unexpected_limit", &Options::unexpected_limit, "messages", 64,
           16 * kMillion, "How many messages may wait at a rank for a receive to be posted."),
    Number(
        Group::kLimits, "quota_sessions", &Options::quota_sessions, "sessions", 0, kMillion,
        "How many ranks of one user, root included, may be attached to one daemon. 0: three "
        "quarters of the max_local_ranks places that other users leave where the daemon serves all "
        "users, so that there is room for one more user; else no limit but max_local_ranks."),
    Number(Group::kLimits, "quota_regions", &Options::quota_regions, "regions", 0, 16 * kMillion,
           "How many regions (heaps, allocations of device memory) each user may have registered. "
           "0: no limit."),
    Number(Group::kLimits, "quota_pinned_bytes", &Options::quota_pinned_bytes, "bytes", 0,
           1024 * kTebi, "Total size of the regions of each user. 0: no limit."),
    Number(Group::kLimits, "quota_jobs", &Options::quota_jobs, "jobs", 0, kMillion,
           "How many jobs each user may have on one daemon. 0: no limit."),
    Number(Group::kLimits, "quota_nodes", &Options::quota_nodes, "nodes", 0, kMillion,
           "How many other nodes the jobs of each user on one daemon may have, all jobs together: "
           "the daemon keeps a link to each. 0: no limit."),
    Number(Group::kLimits, "quota_ranks", &Options::quota_ranks, "ranks", 0, 1024 * kMillion,
           "How many ranks, on all nodes, the jobs of each user on one daemon may have, all jobs "
           "together: the daemon keeps some 300 bytes for each. 0: no limit."),
    Number(Group::kLimits, "quota_requests", &Options::quota_requests, "requests", 0,
           1024 * kMillion,
           "How many requests all ranks of a user may have together (request_limit for each rank). "
           "The daemon may need some 250 bytes for each. 0: no limit."),
    Number(Group::kLimits, "registration_cache_entries", &Options::registration_cache_entries,
           "registrations", 0, 16 * kMillion,
           "How many registrations of ranks' memory with the network the daemon keeps. Of those "
           "not in use, the one used longest ago goes first. 0: no limit."),
    Number(Group::kLimits, "registration_cache_bytes", &Options::registration_cache_bytes, "bytes",
           0, 1024 * kTebi,
           "Total size of the memory of these registrations. Half of each limit is for memory that "
           "ranks offer to other nodes, so this half is also the largest message from a heap. 0: "
           "no limit."),
    Number(
        Group::kLimits, "registration_piece_bytes", &Options::registration_piece_bytes, "bytes",
        4 * kKibi, 1024 * kTebi,
        "A region up to this size is registered as a whole when it is first used between nodes. Of "
        "a larger one, only the pieces of this size are registered in which the message lies."),

    Number(Group::kMessages, "heap_bytes", &Options::heap_bytes, "bytes", kMebi, kTebi,
           "Size of a rank's Ferry heap in host memory. Peers and daemon reach this memory without "
           "a second copy."),
    Number(Group::kMessages, "eager_max_bytes", &Options::eager_max_bytes, "bytes", 0, 8 * kKibi,
           "Messages up to this size are sent at once through the receiver's lane; larger ones "
           "wait for the receive (rendezvous). At most one slab cell."),
    Number(Group::kMessages, "receiver_first_min_bytes", &Options::receiver_first_min_bytes,
           "bytes", 0, kTebi,
           "A receive of this size or more from another node into a heap is announced to the "
           "sender, whose daemon then writes the message there (receiver-first rendezvous). 0: "
           "never; the receiver's daemon fetches all messages."),
    Number(Group::kMessages, "rendezvous_chunk_bytes", &Options::rendezvous_chunk_bytes, "bytes",
           4 * kKibi, 16 * kMebi,
           "A rendezvous inside a node is copied in chunks of this size, by sender, receiver and "
           "daemon, whoever is free."),
    Number(Group::kMessages, "staging_block_bytes", &Options::staging_block_bytes, "bytes",
           4 * kKibi, 64 * kMebi,
           "Block size of the pipeline between nodes, for memory that the network cannot reach "
           "directly."),
    Number(Group::kMessages, "staging_blocks", &Options::staging_blocks, "blocks", 2, 4096,
           "How many such blocks a job gets on each node at most. It gets more as long as "
           "transfers wait for one."),
    Number(Group::kMessages, "staging_min_blocks", &Options::staging_min_blocks, "blocks", 2, 4096,
           "How many of them it gets when it needs the first one, and keeps; never more than "
           "staging_blocks."),
    Number(Group::kMessages, "staging_idle_ms", &Options::staging_idle_ms, "ms", 1, kHourMs,
           "A job gives back the staging blocks above its minimum, for host or device memory, that "
           "it has not needed for this long. Blocks for device memory stay where a worker process "
           "copies, because it keeps them pinned for the GPU."),
    Text(Group::kMessages, "staging_weights", &Options::staging_weights, 0, kPathMax,
         "How the ranks of a job share its staging blocks while there are too few: a list "
         "RANK:WEIGHT,... such as 0:4,7:2. A rank with WEIGHT (1 to 100) gets up to WEIGHT times "
         "as many as a rank that is not listed. Empty: all get the same."),
    Number(Group::kMessages, "copy_workers", &Options::copy_workers, "threads", 0, 64,
           "Number of the daemon's threads that copy into and out of staging blocks. 0: the "
           "progress thread copies."),
    Choice(Group::kMessages, "worker_mode", &Options::worker_mode, "auto|thread|process",
           "Who matches and copies for ranks that compute. thread: a thread of the daemon, for "
           "ranks of its own user only; process: a process for each job, which runs as the user of "
           "its ranks; auto: the thread for ranks of the daemon's own user, a process for others."),
    Text(Group::kMessages, "worker_program", &Options::worker_program, 0, kPathMax,
         "The program of these processes. Empty: ferry-worker beside ferryd, or in "
         "../libexec/ferry or ../lib/ferry of its directory."),

    Choice(
        Group::kLinks, "direct_links", &Options::direct_links, "off|auto|always",
        "Whether ranks of different nodes may have direct links: connections of their own, past "
        "the daemons. off: all messages go through the daemons; auto: ranks that talk much get "
        "one, but not over a NIC's provider, nor with fabric_rails, nor where a job has more than "
        "four ranks on a node for each of its cores; always: ranks ask for one with their first "
        "message, and keep it. A pair has one only if the daemons of both nodes allow it."),
    Text(
        Group::kLinks, "direct_link_provider", &Options::direct_link_provider, 1, 63,
        "What direct links go over, as provider. auto: ferry-tcp where the daemons' provider goes "
        "over the kernel's sockets, else the daemons' provider. It must be the same on all nodes."),
    Number(Group::kLinks, "direct_links_per_rank", &Options::direct_links_per_rank, "links", 1,
           1023,
           "How many direct links a rank may have. At the limit, the one that is idle for longest "
           "gives way."),
    Number(Group::kLinks, "direct_links_per_job", &Options::direct_links_per_job, "links", 0,
           kMillion, "How many all ranks of a job on this node may have together. 0: no limit."),
    Number(Group::kLinks, "quota_links", &Options::quota_links, "links", 0, kMillion,
           "How many all ranks of a user on this node may have together. 0: no limit."),
    Number(Group::kLinks, "direct_link_messages", &Options::direct_link_messages, "messages", 1,
           kMillion,
           "With direct_links auto, a rank asks for a direct link to another one after it has sent "
           "it this many messages through the daemons."),
    Number(Group::kLinks, "direct_link_bytes", &Options::direct_link_bytes, "bytes", 1, kTebi,
           "The same in bytes of these messages; whichever comes first."),
    Number(Group::kLinks, "direct_link_idle_ms", &Options::direct_link_idle_ms, "milliseconds", 1,
           kHourMs,
           "A direction that has had no message for this long goes back to the daemons. Once both "
           "have, the link is closed."),

    Number(Group::kWaiting, "spin_pauses", &Options::spin_pauses, "pauses", 0, kMillion,
           "How often a waiting rank pauses before it yields the core between polls. If a node has "
           "more ranks than cores, they yield at once."),
    Number(Group::kWaiting, "idle_before_sleep_us", &Options::idle_before_sleep_us, "microseconds",
           0, 10 * kSecondUs,
           "A waiting rank sleeps after it has polled for this long in vain. To wake it costs its "
           "peer tens of microseconds."),
    Number(Group::kWaiting, "daemon_idle_before_sleep_us", &Options::daemon_idle_before_sleep_us,
           "microseconds", 0, 10 * kSecondUs, "The same for the daemon's progress thread."),

    Number(Group::kFailures, "heartbeat_interval_ms", &Options::heartbeat_interval_ms,
           "milliseconds", 10, kHourMs,
           "How often daemons send each other a sign of life. Among more than 8 of them each peer "
           "gets its own less often, at least five times in peer_timeout_ms."),
    Number(Group::kFailures, "peer_timeout_ms", &Options::peer_timeout_ms, "milliseconds", 50,
           kHourMs,
           "A daemon that is silent for this long counts as cut off, and operations with its ranks "
           "fail. Messages flow again once it is back. A daemon that dies is noticed at once. At "
           "least twice heartbeat_interval_ms."),
    Number(Group::kFailures, "operation_timeout_ms", &Options::operation_timeout_ms, "milliseconds",
           100, kHourMs,
           "A network operation fails if it takes longer than this. Must be longer than "
           "peer_timeout_ms, so that a shorter break of a link costs nothing but time."),
    Number(Group::kFailures, "attach_timeout_ms", &Options::attach_timeout_ms, "milliseconds", 100,
           kHourMs,
           "How long a rank waits for an answer of its daemon. While that answers, ranks wait for "
           "one another without a limit."),
    Number(Group::kFailures, "drain_timeout_ms", &Options::drain_timeout_ms, "milliseconds", 0,
           kHourMs,
           "How long a daemon that was told to stop by a signal waits for its ranks to leave."),

    Choice(Group::kGpu, "gpu_backend", &Options::gpu_backend, "auto|cuda|hip|level_zero|host",
           "Which GPUs are used. cuda, hip and level_zero: those of NVIDIA, AMD and Intel; host: "
           "devices emulated in host memory; auto: the first of these whose library and driver are "
           "present and have a device, before others one whose library the program has loaded. "
           "Memory of the program's own is known whatever this says, also where it loads the "
           "vendor's library later."),
    Text(Group::kGpu, "cuda_library", &Options::cuda_library, 0, kPathMax,
         "File of the CUDA driver's library, if it is not the libcuda.so.1 that the linker finds."),
    Text(Group::kGpu, "hip_library", &Options::hip_library, 0, kPathMax,
         "File of ROCm's HIP run time, if it is not the libamdhip64.so that the linker finds."),
    Text(
        Group::kGpu, "level_zero_library", &Options::level_zero_library, 0, kPathMax,
        "File of the Level Zero loader, if it is not the libze_loader.so.1 that the linker finds."),
    Number(Group::kGpu, "gpu_idle_release_ms", &Options::gpu_idle_release_ms, "ms", 0, kHourMs,
           "A daemon or worker process closes a GPU backend, with its contexts on the devices, "
           "when it has imported no rank's memory for this long."),
    Number(Group::kGpu, "pipeline_threshold_bytes", &Options::pipeline_threshold_bytes, "bytes", 0,
           kTebi,
           "A message between nodes up to this size, from or to device memory that the network "
           "cannot reach, is copied as one block. A longer one is cut into several, so that copies "
           "and network overlap."),
    Choice(
        Group::kGpu, "pipeline_mode", &Options::pipeline_mode, "advanced|even|naive",
        "How such a longer message is cut. even: into equal blocks; advanced: half of the first "
        "block is given to the last one, so that the last step starts sooner; naive: not at all."),
    Number(Group::kGpu, "pipeline_blocks_to_host", &Options::pipeline_blocks_to_host, "blocks", 1,
           1024, "Number of blocks into which the sending side cuts a message from device memory."),
    Number(Group::kGpu, "pipeline_blocks_to_device", &Options::pipeline_blocks_to_device, "blocks",
           1, 1024,
           "Number of blocks into which a message to device memory is cut for the receiving side. "
           "If the sending side cuts too, the greater number counts."),
    Number(Group::kGpu, "pipeline_block_bytes", &Options::pipeline_block_bytes, "bytes", 4 * kKibi,
           64 * kMebi,
           "Size of the staging blocks for device memory, and so the longest block of such a "
           "message."),
    Number(Group::kGpu, "pipeline_staging_blocks", &Options::pipeline_staging_blocks, "blocks", 0,
           4096,
           "How many pinned staging blocks for device memory a job gets on each node at most; at "
           "least 2. 0: none; ranks stage such memory themselves, in their heaps, and the daemon "
           "uses no GPU."),
    Number(Group::kGpu, "pipeline_staging_min_blocks", &Options::pipeline_staging_min_blocks,
           "blocks", 2, 4096,
           "How many of them it gets when it needs the first one, and keeps; never more than "
           "pipeline_staging_blocks."),
    Number(
        Group::kGpu, "offload_min_bytes", &Options::offload_min_bytes, "bytes", 0, kTebi,
        "Messages of this size or more to other nodes, from device memory that the network cannot "
        "reach, go through blocks of the heap that are registered with the GPU backend and kept "
        "for later messages (offloaded send buffers). This holds up to pipeline_threshold_bytes, "
        "and for any size where ranks stage such memory themselves. 0: no blocks are kept."),
    Number(Group::kGpu, "matched_cell_bytes", &Options::matched_cell_bytes, "bytes", 0, 8192,
           "A matched receive from another node of up to this size has cells in the heap, where "
           "messages may arrive before it is started (docs/stream_triggered.md). 0: no cells; "
           "every send that is not ready then waits until the receiver is clear to send."),
    Number(Group::kGpu, "matched_cells", &Options::matched_cells, "cells", 2, 64,
           "Number of cells of each such receive. One message fewer than this may arrive before "
           "the starts."),
    Number(Group::kGpu, "deferred_work_entries", &Options::deferred_work_entries, "operations", 0,
           kMillion,
           "How many deferred operations the daemon may have in a NIC at a time; the NIC may have "
           "room for fewer. Operations beyond that are done by the daemon itself "
           "(docs/stream_triggered.md). 0: all of them."),
    Text(Group::kGpu, "deferred_work_weights", &Options::deferred_work_weights, 0, kPathMax,
         "How jobs share these entries while there are too few: a list UID:WEIGHT,... such as "
         "1000:4,1001:2. Jobs of a user with WEIGHT (1 to 100) get up to WEIGHT times as many as "
         "others. Empty: all get the same."),
    Choice(Group::kGpu, "counter_pages", &Options::counter_pages, "auto|off",
           "Whether ranks are given the pages of the NIC's counters, so that their streams start "
           "messages without ferryd (docs/stream_triggered.md). auto: by a ferryd that serves its "
           "own user only, where the NIC's driver lets another process map them. With them a rank "
           "has all that the driver gives ferryd on that NIC. off: never."),

    Text(Group::kMpi, "collective_table", &Options::collective_table, 0, kPathMax,
         "File of rules that choose the algorithm of each MPI collective (docs/mpi.md). Rank 0 "
         "reads it, on its own node, for the whole job. Empty: the built-in rules."),
    Text(Group::kMpi, "collective_algorithms", &Options::collective_algorithms, 0, kPathMax,
         "Algorithms of MPI collectives by name, before any rules, such as "
         "allreduce=ring,bcast=chain:131072. The number is the size in bytes of the pieces in "
         "which long vectors are sent. Where an algorithm cannot do what is asked for, the rules "
         "count. Rank 0's value counts for the whole job."),
    Number(Group::kMpi, "device_reduction_min_bytes", &Options::device_reduction_min_bytes, "bytes",
           0, kTebi,
           "MPI reductions of device memory that CPUs cannot reach are computed by the device if a "
           "rank's vector has this size or more. Shorter vectors are copied to host memory and "
           "reduced by CPUs, which takes less time, unless one kernel reduces those of all ranks "
           "of a node."),
    Text(Group::kMpi, "memory_alloc_kinds", &Options::memory_alloc_kinds, 0, kPathMax,
         "Kinds of memory that an MPI program will use, such as mpi,system,cuda:device "
         "(mpi_memory_alloc_kinds of the standard). MPI then tells it which of them are supported. "
         "Empty: mpi,system."),
    Choice(Group::kMpi, "initial_errhandler", &Options::initial_errhandler,
           "mpi_errors_are_fatal|mpi_errors_abort|mpi_errors_return",
           "What MPI errors do before the program sets an error handler. The first two end the "
           "job; mpi_errors_return makes the call return."),
    Number(
        Group::kMpi, "mpi_check", &Options::mpi_check, "", 0, 1,
        "1: before each collective call, the ranks of the communicator compare it (which call, "
        "root, operation, counts and types). If the calls do not belong together, it fails on all "
        "ranks with the same message (docs/mpi.md). Rank 0's value counts for the whole job."),
    Number(Group::kMpi, "mpi_warn_after_ms", &Options::mpi_warn_after_ms, "milliseconds", 0,
           kHourMs,
           "A rank that waits in a collective for this long, or for the others in MPI_Init, "
           "shmem_init, ferry_init or the calls that end these, writes to its standard error which "
           "ranks have not joined it, and again after twice as long. 0: never."),

    Number(Group::kShmem, "shmem_heap_bytes", &Options::shmem_heap_bytes, "bytes", 0, kTebi,
           "How large the symmetric heap of a PE may become, unless SHMEM_SYMMETRIC_SIZE says so. "
           "Only what is used takes memory. 0: the PE's part of half of the node's memory."),
    From(
        Source::kEnvironmentOnly,
        Choice(Group::kShmem, "shmem_statics", &Options::shmem_statics, "shared|private",
               "Whether global and static data of a program that is linked with libferry_shmem are "
               "symmetric. private: they stay as the loader has mapped them; only memory of "
               "shmem_malloc is symmetric then.")),
    Number(
        Group::kShmem, "shmem_check", &Options::shmem_check, "", 0, 1,
        "1: calls of OpenSHMEM are checked: that memory of the symmetric heap is in use and does "
        "not overlap, that all PEs make the same collective calls, and that nothing is left at "
        "the end (docs/shmem.md). This takes time. PE 0's value counts for the whole job."),
    Text(
        Group::kShmem, "shmem_cutovers", &Options::shmem_cutovers, 0, kPathMax,
        "From how many bytes on a kernel's put or get inside a node is asked of ferryd in place of "
        "stores and loads by the threads that call, such as put=32k,put/128=1m,get=never: the "
        "number behind the operation says from how many threads on. ferryctl tune --kernels "
        "measures it (docs/tuning.md). Empty: never."),

    Choice(Group::kLog, "log_level", &Options::log_level, "trace|debug|info|warn|error|off",
           "The least severe messages that the daemon and the tools log."),
    Choice(Group::kLog, "log_format", &Options::log_format, "text|json",
           "text: for people; json: one object per line."),
    Text(Group::kLog, "log_file", &Options::log_file, 0, kPathMax,
         "File to which log lines are appended. Empty: standard error."),
    Text(Group::kLog, "job_records", &Options::job_records, 0, kPathMax,
         "Directory in which the daemon leaves a file for each job that has ended, with its "
         "figures, in a folder for each user, which that user may read (docs/operations.md). It "
         "must be there, and belong to the user that ferryd runs as. Empty: none."),
    Number(Group::kLog, "job_records_kept", &Options::job_records_kept, "records", 1, kMillion,
           "How many of these files are kept of each user; the oldest go first."),
    Text(Group::kLog, "job_reports", &Options::job_reports, 0, kPathMax,
         "Directory in which ferryrun leaves a report of each job, as a page for browsers, as "
         "`--report=FILE.html` does for one (docs/observability.md). A leading ~/ is the user's "
         "home. Empty: none."),
    Choice(Group::kLog, "profile", &Options::profile, "off|report|trace|report,trace",
           "What a rank measures of itself and leaves with its daemon. ferryrun sets it for "
           "--report and --trace; otherwise no program fetches it."),
    Number(Group::kLog, "profile_bytes", &Options::profile_bytes, "bytes", 0, kTebi,
           "The most memory that the measured ranks of one job may leave with a daemon. Further "
           "ranks are not measured, and the report says so."),
    Number(Group::kLog, "trace_bytes", &Options::trace_bytes, "bytes", 64 * kKibi, kTebi,
           "The most memory for the events of one rank of a job that is traced; new ones replace "
           "the oldest."),
    Number(Group::kLog, "trace_events", &Options::trace_events, "records", 1024, kMillion * 64,
           "How many records of 64 bytes `ferryctl trace` keeps; new ones replace the oldest. The "
           "memory is taken when a trace starts and given back when it stops."),
    Choice(Group::kLog, "backtrace", &Options::backtrace, "on|off",
           "on: a rank that SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT ends writes to its standard "
           "error in which function it was, and who had called that, unless the program handles "
           "that signal itself. The signal and the core dump stay as they are. off: it does not."),

    Number(Group::kSimulation, "host_gpu_count", &Options::host_gpu_count, "devices", 1, 64,
           "How many devices the host backend emulates on this node."),
    Number(Group::kSimulation, "host_gpu_memory_bytes", &Options::host_gpu_memory_bytes, "bytes",
           kMebi, kTebi, "Memory of each emulated device."),
    Number(
        Group::kSimulation, "host_link_h2d_mb_per_s", &Options::host_link_h2d_mb_per_s, "MB/s", 0,
        kMillion,
        "Emulated bandwidth of copies from pinned host memory to a device. 0: no link is emulated, "
        "and copies run at the speed of memory. Set it together with host_link_d2h_mb_per_s."),
    Number(Group::kSimulation, "host_link_d2h_mb_per_s", &Options::host_link_d2h_mb_per_s, "MB/s",
           0, kMillion, "Emulated bandwidth of copies from a device to pinned host memory."),
    Number(Group::kSimulation, "host_link_pageable_h2d_mb_per_s",
           &Options::host_link_pageable_h2d_mb_per_s, "MB/s", 0, kMillion,
           "Emulated bandwidth from host to device for memory that is neither pinned nor "
           "registered. 0: as for pinned memory."),
    Number(Group::kSimulation, "host_link_pageable_d2h_mb_per_s",
           &Options::host_link_pageable_d2h_mb_per_s, "MB/s", 0, kMillion,
           "Emulated bandwidth from device to host for such memory."),
    Number(Group::kSimulation, "host_link_d2d_mb_per_s", &Options::host_link_d2d_mb_per_s, "MB/s",
           0, kMillion,
           "Emulated bandwidth of copies inside a device. 0: they take only their start-up time. "
           "This option and the next ones need an emulated link."),
    Number(Group::kSimulation, "host_link_latency_us", &Options::host_link_latency_us,
           "microseconds", 0, kSecondUs,
           "Emulated start-up time of every copy to, from or inside a device."),
    Number(Group::kSimulation, "host_link_pageable_latency_us",
           &Options::host_link_pageable_latency_us, "microseconds", 0, kSecondUs,
           "Emulated start-up time for memory that is neither pinned nor registered. 0: as "
           "host_link_latency_us."),
    Number(Group::kSimulation, "host_link_engines", &Options::host_link_engines, "engines", 1, 2,
           "Number of emulated copy engines of each device. With 1, the two directions take turns; "
           "with 2, each has its own."),
    Number(Group::kSimulation, "host_link_guard", &Options::host_link_guard, "", 0, 1,
           "1: a program that touches device memory behind an emulated link other than through a "
           "stream ends with a fault, as with a GPU whose memory CPUs cannot reach."),
    Number(Group::kSimulation, "host_launch_us", &Options::host_launch_us, "microseconds", 0,
           kMillion,
           "An operation of an emulated device's stream begins at the earliest this long after it "
           "was enqueued, as kernels of real devices do. Operations that were enqueued well ahead "
           "do not show it."),
    Number(Group::kSimulation, "host_synchronize_us", &Options::host_synchronize_us, "microseconds",
           0, kMillion, "How much longer it takes to wait for an emulated device's stream."),
    Text(Group::kSimulation, "faults", &Options::faults, 0, kPathMax,
         "Faults that the daemon is to produce, as POINT:N:ACTION,... such as "
         "staging.copy_in:3:SYSTEM (docs/operations.md lists them). Empty: none."),

    Choice(
        Group::kLaunching, "launcher", &Options::launcher,
        "ssh|srun|qrsh|blaunch|pbs_tmrsh|pbsdsh|flux|none",
        "How ferryrun reaches the other hosts of a job. ssh: by ssh, without a password; srun: "
        "as a step of the Slurm job in which it runs; qrsh, blaunch, pbs_tmrsh, pbsdsh: as tasks "
        "of "
        "the job of Grid Engine (qrsh -inherit), LSF, PBS or Torque in which it runs; flux: by "
        "flux "
        "exec, in the Flux instance in which it runs; none: not at all. Hosts that ferryrun has "
        "from a batch system are reached by that one's way, where it is there and neither launcher "
        "nor rsh is set."),
    Text(Group::kLaunching, "rsh", &Options::rsh, 0, kPathMax,
         "Command that replaces that of launcher, as words separated by spaces, such as ssh -p "
         "2222. ferryrun adds the host and what to run there. Empty: ssh -x -o BatchMode=yes with "
         "launcher ssh."),
    Choice(Group::kLaunching, "malloc", &Options::malloc, "system|ferry",
           "Whose malloc ranks have that ferryrun starts. ferry: libferry_malloc.so, whose memory "
           "the ranks of the node read without the kernel (docs/tuning.md); system: what the "
           "program comes with."),
    Number(Group::kLaunching, "tree_radix", &Options::tree_radix, "", 0, 1048576,
           "To how many others each daemon of a job of more than so many and one nodes passes on "
           "the job's news; daemons meet others when their ranks first do. Ferryrun's holds for "
           "the jobs that it starts, rank 0's for those of other launchers. 0: all daemons of a "
           "job meet at its start."),
    Choice(
        Group::kLaunching, "bind_to", &Options::bind_to,
        "auto|none|core|hwthread|l3cache|numa|socket",
        "Where ranks that ferryrun starts may run. auto: each on an equal share of the cores "
        "that ferryrun may use and no other job has, of it as many as OMP_NUM_THREADS says, and "
        "anywhere where ranks outnumber these; none: anywhere; core, hwthread: one each; l3cache, "
        "numa, socket: these in turn (docs/tuning.md)."),

    From(Source::kEnvironmentOnly, Text(Group::kLaunch, "job_id", &Options::job_id, 0, 63,
                                        "Name of the job, the same for all its ranks.")),
    Secret(
        From(Source::kEnvironmentOnly, Text(Group::kLaunch, "job_secret", &Options::job_secret, 0,
                                            128, "What a process must know to join the job."))),
    From(Source::kEnvironmentOnly, Number(Group::kLaunch, "rank", &Options::rank, "", 0,
                                          kMillion - 1, "Number of this rank, from 0.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "size", &Options::size, "ranks", 0, kMillion,
                "Number of ranks of the job. 0: outside a job.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "node", &Options::node, "", 0, kMillion - 1,
                "Number of the rank's node within the job, from 0.")),
    From(Source::kEnvironmentOnly,
         Number(
             Group::kLaunch, "abort_fd", &Options::abort_fd, "", 0, kMillion - 1,
             "Descriptor of a pipe on which the rank tells ferryrun that it joins the job, leaves "
             "it, or aborts it. 0: none.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "app", &Options::app, "", 0, kMillion - 1,
                "Which of the job's programs this rank runs, from 0 (MPI_APPNUM).")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "app_size", &Options::app_size, "ranks", 0, kMillion,
                "How many ranks run that program. 0: all of the job.")),
    From(Source::kEnvironmentOnly,
         Number(Group::kLaunch, "universe_size", &Options::universe_size, "ranks", 0, kMillion,
                "For how many ranks there is room (MPI_UNIVERSE_SIZE). 0: for those of the job.")),
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
    case Group::kLinks:
      return "Direct links";
    case Group::kWaiting:
      return "Waiting";
    case Group::kFailures:
      return "Failures";
    case Group::kGpu:
      return "GPUs";
    case Group::kShmem:
      return "OpenSHMEM";
    case Group::kMpi:
      return "MPI";
    case Group::kLog:
      return "Log";
    case Group::kSimulation:
      return "Emulated devices and faults, for tests and rehearsals";
    case Group::kLaunching:
      return "Launching";
    case Group::kLaunch:
      return "A rank's place in its job (set by ferryrun)";
  }
  return "";
}

}  // namespace ferry::config
