/* The control client of libferry: calls to the daemon's gRPC services Client and, for ranks that
 * start their job themselves, Launcher, behind plain C.
 *
 * libferry opens libferry_control.so with dlopen(RTLD_NOW | RTLD_LOCAL) when a rank first joins a
 * job and calls ferry_control_entry, its only exported symbol. So libferry itself links neither
 * gRPC nor Protocol Buffers. This header needs neither.
 *
 * Isolated: the library's own symbols are hidden and bound to itself (-Bsymbolic), and its messages
 * use the lite runtime, which registers nothing in a process-wide pool. Not isolated: the shared
 * libraries of gRPC, Abseil and protobuf-lite are found by SONAME, and their symbols are looked up
 * in the global scope first. If an application exports another version of them from its executable,
 * or loads one with RTLD_GLOBAL, that version is used instead.
 *
 * No thread is started before `connect`. After the first `connect` gRPC keeps threads of its own;
 * the library stays in memory for the life of the process (-z nodelete), even after dlclose. A
 * forked child must not use it.
 *
 * Every function blocks until the daemon has answered or `timeout_ms` has passed, and returns 0 or
 * an ErrorCode (common/error_code.h); on failure `text` holds a sentence, ended by a null byte.
 * join and detach wait for others, for as long as the daemon answers that it still does: it has to
 * say so after half of `timeout_ms`, and has `timeout_ms` more to do it.
 * Calls on one handle may come from any thread, at the same time; close must be the last call.
 */
#ifndef FERRY_CLIENT_CONTROL_CONTROL_API_H_
#define FERRY_CLIENT_CONTROL_CONTROL_API_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FERRY_CONTROL_API_VERSION 5
#define FERRY_CONTROL_ENTRY_NAME "ferry_control_entry"

/* As in proto/control.proto. */
enum { FERRY_CONTROL_REGION_HOST_HEAP = 1, FERRY_CONTROL_REGION_DEVICE = 2 };

typedef struct ferry_control ferry_control; /* a connection */

typedef struct {
  char* data; /* may be null */
  size_t size_bytes;
} ferry_control_text;

typedef struct {
  uint32_t rank;
  uint32_t node;
  uint32_t local_index;              /* its lane on its node */
  uint32_t pid;                      /* 0 for ranks of other nodes */
  uint32_t private_memory_reachable; /* 0 or 1 */
} ferry_control_peer;

typedef struct {
  uint32_t region; /* chosen by the rank, unique within it, never 0 */
  uint32_t kind;   /* FERRY_CONTROL_REGION_... */
  uint32_t device;
  uint32_t reserved;
  uint64_t size_bytes;
  uint64_t allocation_id;
} ferry_control_region;

typedef struct {
  uint32_t context; /* the communicator's */
  uint32_t source;  /* ranks of the job */
  uint32_t destination;
  int32_t tag;
  uint64_t ordinal; /* of its rank's persistent sends, or receives, with all that */
} ferry_control_match_key;

typedef struct {
  uint32_t region; /* 0: none */
  uint32_t reserved;
  uint64_t offset;
} ferry_control_place;

/* A persistent request to be matched: MatchOffer of proto/control.proto. */
typedef struct {
  ferry_control_match_key key;
  uint64_t size_bytes;
  uint32_t mode;
  uint32_t cell_count;
  ferry_control_place end;
  ferry_control_place window;
  ferry_control_place cells;
} ferry_control_offer;

typedef struct {
  const char* job_id;
  const char* secret;
  uint32_t size;
  uint32_t node; /* the daemon's own */
  uint32_t node_count;
  const uint32_t* node_of_rank;      /* `size` entries */
  const char* const* node_addresses; /* `node_count` entries, host:port */
} ferry_control_job;

typedef struct {
  uint32_t version; /* FERRY_CONTROL_API_VERSION */

  /* `socket`: a connection to control.sock, whose server the caller has looked at; it is closed
   * with the handle, and if this fails. `socket_path` names it in messages. `token_hex`: the token
   * of AttachReply, or UserReply for the last two calls, as hexadecimal text. On success the caller
   * owns *control. Does not block.
   */
  int (*connect)(int socket, const char* socket_path, const char* token_hex,
                 ferry_control** control, ferry_control_text text);
  /* Waits until every rank has joined. Fills peers[0 .. size), by rank; `size` is the job's size.
   * Calls `waits` meanwhile, with the ranks that are missing, or with "" if another rank of the job
   * is told: about every half of `timeout_ms`, and every `wait_ms` if that is less and not 0. */
  int (*join)(ferry_control* control, uint32_t timeout_ms, uint32_t wait_ms, uint32_t size,
              ferry_control_peer* peers, uint32_t* node, uint32_t* node_count,
              void (*waits)(void* argument, const char* missing), void* argument,
              ferry_control_text text);
  /* Its descriptor must have gone over the attach socket. */
  int (*register_region)(ferry_control* control, uint32_t timeout_ms,
                         const ferry_control_region* region, ferry_control_text text);
  int (*deregister_region)(ferry_control* control, uint32_t timeout_ms, uint32_t region,
                           ferry_control_text text);
  /* Where `count` ranks live: fills peers[0 .. count), in the order asked for. */
  int (*resolve)(ferry_control* control, uint32_t timeout_ms, const uint32_t* ranks, uint32_t count,
                 ferry_control_peer* peers, ferry_control_text text);
  /* Offers `count` requests, all sends or all receives, to be matched; all or none are taken. The
   * outcome of each appears in its PairWords (shm/layout/channel_layout.h). */
  int (*offer_matches)(ferry_control* control, uint32_t timeout_ms, int sends,
                       const ferry_control_offer* offers, size_t count, ferry_control_text text);
  /* Takes back an offered request, after `rounds` complete messages. */
  int (*withdraw_match)(ferry_control* control, uint32_t timeout_ms, int send,
                        const ferry_control_match_key* key, uint64_t rounds,
                        ferry_control_text text);
  /* An orderly leave: the session ends, the connection stays until close. */
  int (*detach)(ferry_control* control, uint32_t timeout_ms, ferry_control_text text);
  /* Fills `verdict` with a sentence that says what this rank waits for, and why. */
  int (*why)(ferry_control* control, uint32_t timeout_ms, ferry_control_text verdict,
             ferry_control_text text);
  /* Fails the whole job. `reason` may be null. */
  int (*abort)(ferry_control* control, uint32_t timeout_ms, int32_t exit_code, const char* reason,
               ferry_control_text text);
  /* Fills `address` with the host:port at which other daemons reach this one. */
  int (*control_address)(ferry_control* control, uint32_t timeout_ms, ferry_control_text address,
                         ferry_control_text text);
  /* Creates a job. It ends when the attach-socket connection that gave the token closes. */
  int (*create_job)(ferry_control* control, uint32_t timeout_ms, const ferry_control_job* job,
                    ferry_control_text text);
  /* Frees the handle; null is allowed. */
  void (*close)(ferry_control* control);
} ferry_control_api;

typedef const ferry_control_api* (*ferry_control_entry_function)(void);

#ifdef __cplusplus
}
#endif

#endif /* FERRY_CLIENT_CONTROL_CONTROL_API_H_ */
