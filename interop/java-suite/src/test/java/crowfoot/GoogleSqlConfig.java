package crowfoot;

import com.google.cloud.spanner.GceTestEnvConfig;
import com.google.cloud.spanner.SpannerOptions;
import com.google.cloud.spanner.spi.v1.SpannerInterceptorProvider;
import com.google.spanner.admin.database.v1.CreateDatabaseRequest;
import com.google.spanner.admin.database.v1.DatabaseDialect;
import com.google.spanner.admin.database.v1.UpdateDatabaseDdlRequest;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.MethodDescriptor;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The environment of the suite's tests. Many of its classes create a database of each dialect before their first test, and run each test in both.
 * So that the tests in GoogleSQL run, a database of the PostgreSQL dialect is created as an empty one of GoogleSQL.
 */
public final class GoogleSqlConfig extends GceTestEnvConfig implements ClientInterceptor {
  private final Set<String> empty = ConcurrentHashMap.newKeySet();

  @Override
  public SpannerOptions spannerOptions() {
    return super.spannerOptions().toBuilder().setInterceptorProvider(SpannerInterceptorProvider.createDefault().with(this)).build();
  }

  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
    return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
      @Override
      @SuppressWarnings("unchecked") // a request stays of its type
      public void sendMessage(Q request) {
        super.sendMessage((Q) replace(request));
      }
    };
  }

  private Object replace(Object request) {
    if (request instanceof CreateDatabaseRequest create && create.getDatabaseDialect() == DatabaseDialect.POSTGRESQL) {
      String name = create.getCreateStatement().replaceAll(".*\"(.*)\".*", "$1");
      empty.add(create.getParent() + "/databases/" + name);
      return create.toBuilder().clearExtraStatements().clearDatabaseDialect().setCreateStatement("CREATE DATABASE `" + name + "`").build();
    }
    if (request instanceof UpdateDatabaseDdlRequest update && empty.contains(update.getDatabase())) {
      return update.toBuilder().clearStatements().addStatements("ANALYZE").build();
    }
    return request;
  }
}
