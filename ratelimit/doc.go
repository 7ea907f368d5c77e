// Package ratelimit decides how fast calls may go: so many tokens in so long a
// time, for everybody, for each user, for each route, or for all of them at once.
//
// # Words
//
// A Rate is so many tokens in so long a time. A limiter that is asked for n tokens
// answers with a Decision, which is small and works out what it is asked for when it
// is asked. A refusal as an error is a *LimitError, which matches ErrLimited and
// sluice.ErrRejected. A Layer is a limiter, or one key of one, in a call of TakeAll.
package ratelimit
