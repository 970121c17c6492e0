// Reads a connection string a line. Logs in, inserts a document, finds it, and prints "found"; or prints the
// code of the server's refusal.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

func login(uri string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	defer client.Disconnect(ctx)
	cakes := client.Database("shop").Collection("cakes")
	inserted, err := cakes.InsertOne(ctx, bson.M{"driver": "go"})
	if err != nil {
		return err
	}
	var found bson.M
	if err = cakes.FindOne(ctx, bson.M{"_id": inserted.InsertedID}).Decode(&found); err != nil {
		return err
	}
	if found["driver"] != "go" {
		return errors.New("another document")
	}
	return nil
}

func answer(err error) string {
	var refusal mongo.CommandError
	if err == nil {
		return "found"
	} else if errors.As(err, &refusal) {
		return strconv.Itoa(int(refusal.Code))
	}
	return err.Error()
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(answer(login(lines.Text())))
	}
}
