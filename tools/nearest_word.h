/* nearest_word.h - suggests the word that a mistyped one was meant to be. */
#ifndef TOOL_NEAREST_WORD_H
#define TOOL_NEAREST_WORD_H

/* Returns the candidate nearest to `word` by insertions, deletions, replacements and swaps of neighbours, ignoring
 * case; NULL when none is near. */
const char *nearest_word(const char *word, const char *const *candidates, int count);

#endif
