/* A computation that goes on from its last checkpoint on any number of ranks (MPI 5.0, chapter 14),
 * and checks itself.
 *
 *   ferryrun -n 4 mpi_checkpoint FILE [STEPS]
 *   ferryrun -n 6 mpi_checkpoint FILE [STEPS]
 *
 * The ranks share a field in blocks, as MPI_DISTRIBUTE_BLOCK cuts it for their number. A run takes
 * the field from FILE, if it is there, computes so many steps more (100), and writes the field
 * back. The file has a header, and then the field row by row: each rank's view of it is a darray,
 * and its block lies in memory inside a border (a subarray), so that a collective call moves the
 * block from its place to the rows of the file. The next run may cut the field otherwise.
 *
 * A new checkpoint has another name until it is complete, so a run that dies leaves the old one.
 * The numbers are integers: the result is that of one rank alone to the last bit.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 301, columns = 203, most_steps = 100000 };
static const char magic[8] = "field 1";

struct header {
  char magic[8];
  int64_t rows, columns, step;
};

static int rank, size;

/* Files return errors, as long as the program sets no other handler. */
static void must(int error, const char* what) {
  if (error == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length;
  MPI_Error_string(error, text, &length);
  fprintf(stderr, "mpi_checkpoint: %s: %s\n", what, text);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- The field ---- */

/* One step of `height` rows and `width` columns inside a border. */
static void relax(const uint32_t* from, uint32_t* to, int height, int width) {
  const int stride = width + 2;
  for (int y = 1; y <= height; ++y) {
    for (int x = 1; x <= width; ++x) {
      const int at = y * stride + x;
      to[at] =
          (4 * from[at] + from[at - 1] + from[at + 1] + from[at - stride] + from[at + stride]) / 8;
    }
  }
}

static uint32_t begin_of(int y, int x) { return (uint32_t)(y * 7919 + x * 104729) % 100000000; }

/* The part of a rank: MPI_DISTRIBUTE_BLOCK's. The last ranks may have less, or nothing. */
struct part {
  int first, count;
};

static struct part part_of(int all, int parts, int index) {
  const int block = (all + parts - 1) / parts;
  const int first = block * index < all ? block * index : all;
  return (struct part){first, all - first < block ? all - first : block};
}

struct block {
  MPI_Comm grid;
  int dims[2], up, down, left, right;
  struct part y, x;
  uint32_t *now, *then;   /* with a border, which is 0 at the field's edges */
  MPI_Datatype in_memory; /* the block without its border */
  MPI_Datatype in_file;   /* its places in the rows of the field */
  MPI_Datatype column;
};

static size_t cells_of(const struct block* block) {
  return (size_t)(block->y.count + 2) * (size_t)(block->x.count + 2);
}

static struct block make_block(void) {
  struct block block = {0};
  const int is_periodic[2] = {0, 0};
  int own[2];
  MPI_Dims_create(size, 2, block.dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, block.dims, is_periodic, 0, &block.grid);
  MPI_Cart_coords(block.grid, rank, 2, own);
  MPI_Cart_shift(block.grid, 0, 1, &block.up, &block.down);
  MPI_Cart_shift(block.grid, 1, 1, &block.left, &block.right);
  block.y = part_of(rows, block.dims[0], own[0]);
  block.x = part_of(columns, block.dims[1], own[1]);
  block.now = calloc(cells_of(&block), sizeof(uint32_t));
  block.then = calloc(cells_of(&block), sizeof(uint32_t));

  const int field[2] = {rows, columns};
  const int cuts[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
  const int usual[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG};
  MPI_Type_create_darray(size, rank, 2, field, cuts, usual, block.dims, MPI_ORDER_C, MPI_UINT32_T,
                         &block.in_file);
  const int with_border[2] = {block.y.count + 2, block.x.count + 2};
  const int inside[2] = {block.y.count, block.x.count};
  const int at[2] = {1, 1};
  if (inside[0] > 0 && inside[1] > 0) {
    MPI_Type_create_subarray(2, with_border, inside, at, MPI_ORDER_C, MPI_UINT32_T,
                             &block.in_memory);
  } else {
    MPI_Type_contiguous(0, MPI_UINT32_T, &block.in_memory);
  }
  MPI_Type_vector(block.y.count, 1, block.x.count + 2, MPI_UINT32_T, &block.column);
  MPI_Type_commit(&block.in_file);
  MPI_Type_commit(&block.in_memory);
  MPI_Type_commit(&block.column);
  return block;
}

static void free_block(struct block* block) {
  free(block->now), free(block->then);
  MPI_Type_free(&block->column);
  MPI_Type_free(&block->in_memory);
  MPI_Type_free(&block->in_file);
  MPI_Comm_free(&block->grid);
}

/* Fills the border with the neighbours' outermost cells. */
static void exchange(struct block* block) {
  const int stride = block->x.count + 2, height = block->y.count, width = block->x.count;
  uint32_t* const cells = block->now;
  MPI_Sendrecv(cells + stride + 1, width, MPI_UINT32_T, block->up, 1,
               cells + (height + 1) * stride + 1, width, MPI_UINT32_T, block->down, 1, block->grid,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(cells + height * stride + 1, width, MPI_UINT32_T, block->down, 2, cells + 1, width,
               MPI_UINT32_T, block->up, 2, block->grid, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cells + stride + 1, 1, block->column, block->left, 3, cells + stride + width + 1, 1,
               block->column, block->right, 3, block->grid, MPI_STATUS_IGNORE);
  MPI_Sendrecv(cells + stride + width, 1, block->column, block->right, 4, cells + stride, 1,
               block->column, block->left, 4, block->grid, MPI_STATUS_IGNORE);
}

/* ---- The checkpoint ---- */

/* Each rank sees of the file what follows the header, and of that its own block. */
static void view_block(MPI_File file, const struct block* block) {
  must(MPI_File_set_view(file, sizeof(struct header), MPI_UINT32_T, block->in_file, "native",
                         MPI_INFO_NULL),
       "the view of the block");
}

/* Returns the step of the checkpoint; 0: there is none, and the field is as at the beginning. */
static int64_t restart(const char* name, struct block* block) {
  MPI_File file;
  const int error = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  int error_class;
  MPI_Error_class(error, &error_class);
  if (error_class == MPI_ERR_NO_SUCH_FILE) {
    const int stride = block->x.count + 2;
    for (int y = 0; y < block->y.count; ++y) {
      for (int x = 0; x < block->x.count; ++x) {
        block->now[(y + 1) * stride + x + 1] = begin_of(block->y.first + y, block->x.first + x);
      }
    }
    return 0;
  }
  must(error, "the checkpoint");
  struct header header;
  MPI_Status status;
  int got = 0;
  must(MPI_File_read_at_all(file, 0, &header, sizeof(header), MPI_BYTE, &status), "its header");
  MPI_Get_count(&status, MPI_BYTE, &got);
  if (got != (int)sizeof(header) || memcmp(header.magic, magic, sizeof(magic)) != 0 ||
      header.rows != rows || header.columns != columns) {
    must(MPI_ERR_FILE, "this is no checkpoint of this program");
  }
  view_block(file, block);
  must(MPI_File_read_all(file, block->now, 1, block->in_memory, &status), "the field");
  MPI_Get_elements(&status, MPI_UINT32_T, &got);
  if (got != block->y.count * block->x.count) must(MPI_ERR_FILE, "the checkpoint is cut off");
  must(MPI_File_close(&file), "the checkpoint");
  return header.step;
}

static void save(const char* name, const struct block* block, int64_t step) {
  char* const other = malloc(strlen(name) + 5);
  sprintf(other, "%s.new", name);
  MPI_File file;
  must(
      MPI_File_open(MPI_COMM_WORLD, other, MPI_MODE_WRONLY | MPI_MODE_CREATE, MPI_INFO_NULL, &file),
      "a new checkpoint");
  must(MPI_File_set_size(file, 0), "a new checkpoint"); /* one that was given up may be there */
  if (rank == 0) {
    struct header header = {"", rows, columns, step};
    memcpy(header.magic, magic, sizeof(magic));
    must(MPI_File_write_at(file, 0, &header, sizeof(header), MPI_BYTE, MPI_STATUS_IGNORE),
         "its header");
  }
  view_block(file, block);
  must(MPI_File_write_all(file, block->now, 1, block->in_memory, MPI_STATUS_IGNORE), "the field");
  must(MPI_File_sync(file), "the new checkpoint"); /* on the disk, before it has its name */
  must(MPI_File_close(&file), "the new checkpoint");
  if (rank == 0 && rename(other, name) != 0) must(MPI_ERR_FILE, "the new checkpoint's name");
  MPI_Barrier(MPI_COMM_WORLD);
  free(other);
}

/* ---- The check ---- */

/* Computes the field alone, from the beginning, and counts the cells of the block that differ. */
static long count_wrong(const struct block* block, int64_t steps) {
  const int stride = columns + 2;
  uint32_t *now = calloc((rows + 2) * (size_t)stride, sizeof(uint32_t)),
           *then = calloc((rows + 2) * (size_t)stride, sizeof(uint32_t));
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) now[(y + 1) * stride + x + 1] = begin_of(y, x);
  }
  for (int64_t step = 0; step < steps; ++step) {
    relax(now, then, rows, columns);
    uint32_t* const last = now;
    now = then;
    then = last;
  }
  long wrong = 0;
  for (int y = 1; y <= block->y.count; ++y) {
    for (int x = 1; x <= block->x.count; ++x) {
      wrong += block->now[y * (block->x.count + 2) + x] !=
               now[(block->y.first + y) * stride + block->x.first + x];
    }
  }
  free(now), free(then);
  return wrong;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char* end = NULL;
  const long steps = argc > 2 ? strtol(argv[2], &end, 10) : 100;
  if (argc < 2 || argc > 3 || steps < 0 || steps > most_steps || (end != NULL && *end != '\0')) {
    if (rank == 0) fputs("usage: mpi_checkpoint FILE [STEPS], up to 100000\n", stderr);
    MPI_Finalize();
    return 2;
  }
  struct block block = make_block();
  const int64_t first = restart(argv[1], &block);
  for (long step = 0; step < steps; ++step) {
    exchange(&block);
    relax(block.now, block.then, block.y.count, block.x.count);
    uint32_t* const last = block.now;
    block.now = block.then;
    block.then = last;
  }
  save(argv[1], &block, first + steps);
  long wrong = count_wrong(&block, first + steps);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("checkpoint: steps %lld to %lld on %d x %d ranks: %s\n", (long long)first,
           (long long)(first + steps), block.dims[0], block.dims[1], wrong == 0 ? "PASS" : "FAIL");
  }
  free_block(&block);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
