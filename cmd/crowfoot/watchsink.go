package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	gcppubsub "cloud.google.com/go/pubsub/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crowfoot-db/crowfoot/watch"
	"github.com/crowfoot-db/crowfoot/watch/avro"
	"github.com/crowfoot-db/crowfoot/watch/cloudevents"
	"github.com/crowfoot-db/crowfoot/watch/command"
	"github.com/crowfoot-db/crowfoot/watch/jsonlines"
	"github.com/crowfoot-db/crowfoot/watch/pubsub"
)

// sinkSettings hold the flags that select where changes are sent. Without them the command prints changes.
type sinkSettings struct {
	exec        string
	acknowledge bool

	post, postMode  string
	postHeaders     []string
	postConnections int

	topic, format, project string
	create, schemas        bool
}

var (
	postModes     = []string{"structured", "binary"}
	pubsubFormats = []string{"json", "avro"}
)

func (s *sinkSettings) register(flags *pflag.FlagSet) {
	flags.StringVar(&s.exec, "exec", "", "`COMMAND` of the shell whose standard input gets the lines; it is started once, and again if it fails")
	flags.BoolVar(&s.acknowledge, "exec-acknowledges", false, "a change is delivered when the command has written a line for it to its standard output, not when it is in the pipe to the command")
	flags.StringVar(&s.post, "post", "", "`URL` to which each change is posted as a CloudEvent; it is delivered when the answer is a status of 2xx")
	flags.StringVar(&s.postMode, "post-mode", postModes[0], "`MODE` of CloudEvents: structured, or binary")
	flags.StringArrayVar(&s.postHeaders, "post-header", nil, "`HEADER` of requests, such as 'Authorization: Bearer TOKEN' (repeatable)")
	flags.IntVar(&s.postConnections, "post-connections", cloudevents.DefaultConnections, "how many requests are under way at once; those of one key are always one after the other")
	flags.StringVar(&s.topic, "pubsub-topic", "", "`TOPIC` of Google Pub/Sub to which changes are published, in which %project%, %instance%, %database%, %catalog%, %schema% and %table% stand for the table's")
	flags.StringVar(&s.project, "pubsub-project", "", "`PROJECT` of the topic; that of --database if it is left out")
	flags.StringVar(&s.format, "pubsub-format", pubsubFormats[0], "`FORMAT` of messages: json, or avro")
	flags.BoolVar(&s.schemas, "avro-schemas", false, "print the schema of each table, with which its messages in the format avro are read, and end")
	flags.BoolVar(&s.create, "pubsub-create-topics", false, "create topics that do not exist")
}

// complete registers shell completions for the values of flags.
func (*sinkSettings) complete(c *cobra.Command) {
	cobra.CheckErr(c.RegisterFlagCompletionFunc("post-mode", cobra.FixedCompletions(postModes, cobra.ShellCompDirectiveNoFileComp)))
	cobra.CheckErr(c.RegisterFlagCompletionFunc("pubsub-format", cobra.FixedCompletions(pubsubFormats, cobra.ShellCompDirectiveNoFileComp)))
}

// check returns an error if settings contradict each other.
func (s *sinkSettings) check() error {
	var chosen []string
	for _, f := range []struct{ name, value string }{{"--exec", s.exec}, {"--post", s.post}, {"--pubsub-topic", s.topic}} {
		if f.value != "" {
			chosen = append(chosen, f.name)
		}
	}
	switch {
	case len(chosen) > 1:
		return usageErrorf("%s contradict each other: leave one out, or start a watcher for each with a --repository of its own", strings.Join(chosen, " and "))
	case s.acknowledge && s.exec == "":
		return usageErrorf("--exec-acknowledges needs --exec COMMAND")
	case !slices.Contains(postModes, s.postMode):
		return usageErrorf("--post-mode is %q: want structured or binary", s.postMode)
	case !slices.Contains(pubsubFormats, s.format):
		return usageErrorf("--pubsub-format is %q: want json or avro", s.format)
	case s.postConnections < 1:
		return usageErrorf("--post-connections is %d: want at least 1", s.postConnections)
	}
	if u, err := url.Parse(s.post); s.post != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return usageErrorf("--post is %q: want a URL that begins with http:// or https://", s.post)
	}
	_, err := s.headers()
	return err
}

func (s *sinkSettings) headers() (http.Header, error) {
	list := http.Header{}
	for _, text := range s.postHeaders {
		name, value, ok := strings.Cut(text, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, usageErrorf("--post-header is %q: want NAME: VALUE", text)
		}
		list.Add(name, strings.TrimSpace(value))
	}
	return list, nil
}

// sink is a handler of changes, together with the function that closes it.
type sink struct {
	handler watch.Handler
	close   func() error
}

// open creates the sink that the settings select.
func (s *sinkSettings) open(ctx context.Context, screen *watchScreen, database string, encoder *avro.Encoder) (sink, error) {
	nothing := func() error { return nil }
	switch {
	case s.exec != "":
		c := &command.Command{Args: []string{"/bin/sh", "-c", s.exec}, Acknowledge: s.acknowledge, Stdout: screen.stdout(), Stderr: screen.stderr()}
		return sink{c, c.Close}, nil
	case s.post != "":
		headers, err := s.headers()
		if err != nil {
			return sink{}, err
		}
		mode := cloudevents.Structured
		if s.postMode == "binary" {
			mode = cloudevents.Binary
		}
		return sink{&cloudevents.Sink{URL: s.post, Mode: mode, Header: headers, Connections: s.postConnections}, nothing}, nil
	case s.topic != "":
		return s.publish(ctx, database, encoder)
	}
	return sink{jsonlines.NewWriter(screen.stdout()), nothing}, nil
}

// publish creates a sink that sends changes to Pub/Sub.
func (s *sinkSettings) publish(ctx context.Context, database string, encoder *avro.Encoder) (sink, error) {
	project := s.project
	if project == "" {
		project = strings.Split(database, "/")[1]
	}
	to, err := gcppubsub.NewClient(ctx, project)
	if err != nil {
		return sink{}, fmt.Errorf("a client of Pub/Sub: %w", err)
	}
	p := &pubsub.Sink{Client: to, Topic: s.topic, Create: s.create}
	if s.format == "avro" {
		p.Encode = encoder.Encode
	}
	return sink{p, func() error { p.Close(); return to.Close() }}, nil
}

// printSchemas writes a line for each table: a JSON object with the name and the Avro schema of the table.
func printSchemas(ctx context.Context, out io.Writer, source *watch.Tables, encoder *avro.Encoder) error {
	feeds, err := source.Feeds(ctx)
	if err != nil {
		return err
	}
	for _, f := range feeds {
		schema, err := encoder.Schema(ctx, f.ID().TableID)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "{\"table_name\":%s,\"schema\":%s}\n", jsonlines.AppendString(nil, f.ID().TableID.String()), schema); err != nil {
			return err
		}
	}
	return nil
}
