/* A shared library of the program, with data of its own. */
int part_word = 5;
int part_words[3000];
int* part_hidden(void) {
  static int hidden[10] = {1, 2, 3};
  return hidden;
}
