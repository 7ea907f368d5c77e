package ratelimit

import "context"

func nothing(context.Context) error { return nil }
